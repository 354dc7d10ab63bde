// Command epoll is the bare epoll loop that other servers are measured against: one thread, one read and one
// write a request, always the same bytes, no parsing beyond the end of the head. Nothing that speaks HTTP over
// sockets can cost much less, which is what makes it a unit of measure.
//
//	epoll ADDRESS=FILE …
//
// serves the bytes of each file, a whole HTTP response, on its address.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "epoll:", err)
		os.Exit(1)
	}
}

// response is what one address answers to everything.
type response struct {
	address string
	bytes   []byte
}

func run(args []string) error {
	var responses []response
	for _, a := range args {
		address, file, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%q is not ADDRESS=FILE", a)
		}
		bytes, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		responses = append(responses, response{address, bytes})
	}
	if len(responses) == 0 {
		return fmt.Errorf("no ADDRESS=FILE given")
	}
	return serve(responses)
}
