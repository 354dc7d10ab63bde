package main

import (
	"bytes"
	"fmt"
	"strings"
)

// deb returns a Debian package: an ar archive of the format's version, the control files and the files.
func (r *release) deb(arch string, binary []byte) []byte {
	files := []entry{
		{"usr/bin/strikecache", 0o755, 0, binary},
		file("usr/lib/systemd/system/strikecache.service", "server/deploy/strikecache.service"),
		file("usr/lib/systemd/system/strikecache.socket", "server/deploy/strikecache.socket"),
		file("usr/lib/sysusers.d/strikecache.conf", "server/deploy/release/debian/sysusers.conf"),
		file("usr/share/doc/strikecache/changelog", "server/deploy/CHANGELOG.md"),
		file("usr/share/doc/strikecache/copyright", "LICENSE"),
		file("usr/share/doc/strikecache/examples/alerts.yml", "server/deploy/alerts.yml"),
		file("usr/share/doc/strikecache/examples/grafana.json", "server/deploy/grafana.json"),
		file("usr/share/doc/strikecache/examples/grafana-levels.json", "server/deploy/grafana-levels.json"),
	}
	version := strings.Replace(r.version, "-", "~", 1) // 1.0.0~rc1 is older than 1.0.0
	version = strings.ReplaceAll(version, "-", ".")    // the part after the last hyphen would be a revision
	var control []entry
	for _, name := range []string{"control", "postinst", "prerm", "postrm"} {
		e := file(name, "server/deploy/release/debian/"+name)
		if name == "control" {
			e.content = []byte(strings.NewReplacer("VERSION", version, "ARCHITECTURE", arch).Replace(string(e.content)))
		} else {
			e.mode = 0o755
		}
		control = append(control, e)
	}
	out := bytes.NewBufferString("!<arch>\n")
	for _, member := range []entry{
		{path: "debian-binary", content: []byte("2.0\n")},
		{path: "control.tar.gz", content: compressed(r.archive(control...))},
		{path: "data.tar.gz", content: compressed(r.archive(files...))},
	} {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.path, r.time.Unix(), 0, 0, 0o100644, len(member.content))
		out.Write(member.content)
		if out.Len()%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
