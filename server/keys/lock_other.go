//go:build !unix

package keys

import "sync"

// checksModes says whether the mode of a file tells who may read it. Here the access control list of its folder does.
const checksModes = false

var writers sync.Mutex

// lock keeps out other writers of this process. Other processes it cannot keep out on this system.
func lock(string) (unlock func(), err error) {
	writers.Lock()
	return writers.Unlock, nil
}
