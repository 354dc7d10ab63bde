//go:build !unix

package keys

import "sync"

var writers sync.Mutex

// lock keeps out other writers of this process. On this system it cannot keep out other processes.
func lock(string) (unlock func(), err error) {
	writers.Lock()
	return writers.Unlock, nil
}
