//go:build !linux

package main

import "errors"

func serve([]response) error { return errors.New("epoll exists on Linux only") }
