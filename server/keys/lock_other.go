//go:build !unix

package keys

import "sync"

var writers sync.Mutex

// lock keeps out other writers of this process. Other processes it cannot keep out on this system.
func lock(string) (unlock func(), err error) {
	writers.Lock()
	return writers.Unlock, nil
}
