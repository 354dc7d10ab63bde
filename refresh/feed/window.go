package feed

import (
	"time"

	"strikecache/compute"
)

// The refresh window of a session runs from 15 minutes after the open, when the first delayed quotes of the day
// appear, to 32 minutes after the close, when the last do.
const (
	WindowAfterOpen  = 15 * time.Minute
	WindowAfterClose = 32 * time.Minute
)

// Window returns the refresh window of a session.
func Window(session compute.Date, cal *compute.Calendar) (start, end time.Time) {
	return cal.Open(session).Add(WindowAfterOpen), cal.Close(session).Add(WindowAfterClose)
}

// InWindow says whether t lies in the refresh window of a session.
func InWindow(t time.Time, cal *compute.Calendar) bool {
	session := compute.DateOf(t.In(compute.NewYork))
	if !cal.IsSession(session) {
		return false
	}
	start, end := Window(session, cal)
	return !t.Before(start) && t.Before(end)
}

// LastWindowEnd returns the end of the last refresh window before an instant outside the windows.
func LastWindowEnd(now time.Time, cal *compute.Calendar) time.Time {
	session := cal.SessionDate(now)
	start, end := Window(session, cal)
	if now.Before(start) {
		_, end = Window(cal.Previous(session), cal)
	}
	return end
}
