package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// The files are as the program writes them.
func TestFilesAreCurrent(t *testing.T) {
	t.Chdir("../..")
	for name, content := range files() {
		if written, err := os.ReadFile(folder + name); err != nil || !bytes.Equal(written, content) {
			t.Errorf("%s%s is not up to date: go generate ./server/openapi: %v", folder, name, err)
		}
	}
}

func TestMarkupInATextIsNoMarkup(t *testing.T) {
	const text = "# A\n\n<script>alert(1)</script>\n\nb <i onclick=\"x\"> c `<b>`\n\n## 1. <b>D</b>\n\n|a|\n|---|\n|<img src=x>|\n"
	if html := string(methodsPage(text)) + string(prose(text)); regexp.MustCompile(`<script|<i |<b>|<img`).MatchString(html) {
		t.Error(html)
	}
}
