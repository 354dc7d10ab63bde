package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

type object = map[string]any

// nobody is a user without rights, as user and group.
const nobody = 65532

// settings returns the settings of the image. They are those of the Dockerfile.
func (r *release) settings() object {
	return object{
		"User":         fmt.Sprintf("%d:%d", nobody, nobody), // as numbers, so that Kubernetes sees that it is not root
		"Env":          []string{"STRIKECACHE_LISTEN=:8080", "STRIKECACHE_ADMIN_LISTEN=:9090", "STRIKECACHE_DATA_DIR=/data"},
		"ExposedPorts": object{"8080/tcp": object{}, "9090/tcp": object{}},
		"Volumes":      object{"/data": object{}},
		"Healthcheck": object{
			"Test":     []string{"CMD", "/strikecache", "verify", "--ready", "http://127.0.0.1:9090"},
			"Interval": 30 * time.Second, "Timeout": 10 * time.Second, "StartPeriod": 2 * time.Minute, "Retries": 3,
		},
		"Entrypoint": []string{"/strikecache"},
		"Cmd":        []string{"serve"},
		"Labels":     object{"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "MIT"},
	}
}

// image returns a tar of a container image with one layer: the binary, the certificates of the public authorities, the notices
// and an empty /data. The tar is an OCI layout. Its manifest.json is for programs that know only the form of docker save.
func (r *release) image(arch string, binary []byte) []byte {
	layer := r.archive(
		entry{"strikecache", 0o755, 0, binary}, entry{"data/", 0o755, nobody, nil}, file("LICENSE", "LICENSE"),
		entry{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities()},
	)
	var blobs []entry
	blob := func(kind string, content []byte) object {
		digest := fmt.Sprintf("%x", sha256.Sum256(content))
		blobs = append(blobs, entry{"blobs/sha256/" + digest, 0o644, 0, content})
		return object{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(content)}
	}
	layers := []object{blob("layer.v1.tar+gzip", compressed(layer))}
	config := blob("config.v1+json", encode(object{
		"created": r.time, "architecture": arch, "os": "linux", "config": r.settings(),
		"rootfs": object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	}))
	manifest := blob("manifest.v1+json", encode(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	}))
	manifest["platform"] = object{"architecture": arch, "os": "linux"}
	manifest["annotations"] = object{"io.containerd.image.name": "docker.io/library/strikecache:latest", "org.opencontainers.image.ref.name": "latest"}
	return r.archive(append(blobs,
		entry{"oci-layout", 0o644, 0, encode(object{"imageLayoutVersion": "1.0.0"})},
		entry{"index.json", 0o644, 0, encode(object{"schemaVersion": 2, "manifests": []object{manifest}})},
		entry{"manifest.json", 0o644, 0, encode([]object{{
			"Config": blobs[1].path, "Layers": []string{blobs[0].path},
			"RepoTags": []string{"strikecache:latest", "strikecache:" + strings.ReplaceAll(r.version, "+", "-")}, // a tag has no +
		}})},
	)...)
}

// encode returns v as JSON, with the fields of an object in the order of their names.
func encode(v any) []byte { return must(json.Marshal(v)) }

// authorities returns the certificates of Mozilla's list as PEM. It leaves out those that are trusted under a condition,
// because a file cannot say the condition.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			check(pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}
