package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A log that nobody reads stops no writer. When it is read again, it has the first lines in their order, then how many are lost, then the
// lines that follow.
func TestUnreadLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		w := New(pipe)
		log := w.Logger(func(to io.Writer) slog.Handler { return slog.NewJSONHandler(to, nil) })
		log.Info("first")
		synctest.Wait() // it is being written
		const writers, each = 4, 2000
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for n := range each {
					fmt.Fprintf(w, "%d %100d\n", i, n)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		lost := int(w.Lost())
		if kept := writers*each - lost; w.Err() == nil || kept != maxWaiting {
			t.Errorf("%d lines lost, %v", lost, w.Err())
		}
		var got bytes.Buffer
		wg.Go(func() { io.Copy(&got, reader) })
		synctest.Wait()
		if w.Err() != nil || int(w.Lost()) != lost {
			t.Errorf("%d lines lost, %v", w.Lost(), w.Err())
		}
		log.Info("later")
		w.Close()
		pipe.Close()
		wg.Wait()
		next, told := [writers]int{}, strings.Index(got.String(), `"level":"WARN","msg":"log lines lost","lines":`+fmt.Sprint(lost)+"}\n")
		for line := range strings.Lines(got.String()[:max(told, 0)]) {
			var i, n int
			if _, err := fmt.Sscan(line, &i, &n); err == nil && n == next[i] {
				next[i]++
			} else if !strings.HasPrefix(line, `{"time":`) {
				t.Fatalf("%q after %v", line, next)
			}
		}
		if sum := next[0] + next[1] + next[2] + next[3]; sum != writers*each-lost || !strings.HasSuffix(got.String(), `"level":"INFO","msg":"later"}`+"\n") {
			t.Errorf("%d of %d lines, %d lost: ends with %.300q", sum, writers*each, lost, got.String()[max(told, 0):])
		}
	})
}

// At the end, lines are written that can be, and the end waits three seconds for others.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		w := New(&got)
		fmt.Fprintln(w, "a")
		fmt.Fprintln(w, "b")
		if w.Close(); got.String() != "a\nb\n" {
			t.Errorf("%q", got.String())
		}
		reader, pipe := io.Pipe()
		defer reader.Close()
		w = New(pipe)
		fmt.Fprintln(w, "c")
		began := time.Now()
		if w.Close(); time.Since(began) != closeTimeout {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
}

// fullDisk takes room bytes, and then none.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n, err := d.Buffer.Write(b[:min(len(b), d.room)])
	if d.room -= n; n < len(b) {
		err = errors.New("no space left on device")
	}
	return n, err
}

// Lines that a full disk refuses are counted. When the disk has room again, the next line is whole, and the number of lost lines follows.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &fullDisk{room: 9}
		w := New(disk)
		for i := range 4 {
			fmt.Fprintf(w, "line %d\n", i)
			synctest.Wait()
		}
		if w.Lost() != 3 || w.Err() == nil {
			t.Errorf("%d lost, %v", w.Lost(), w.Err())
		}
		disk.room = 1000
		fmt.Fprintln(w, "line 4")
		synctest.Wait()
		if w.Lost() != 3 || w.Err() != nil {
			t.Errorf("%d lost, %v", w.Lost(), w.Err())
		}
		w.Close()
		if got := disk.String(); !strings.HasPrefix(got, "line 0\nli\nline 4\ntime=") || !strings.HasSuffix(got, ` level=WARN msg="log lines lost" lines=3`+"\n") {
			t.Errorf("%q", got)
		}
	})
}
