//go:build !linux

package server_test

import (
	"io"
	"net"
)

// resets says whether the other end has reset a connection, by the start of a request on it.
func resets(c net.Conn) (yes bool, err error) {
	_, err = io.WriteString(c, "G")
	return err != nil, nil
}
