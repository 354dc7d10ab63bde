// Package deploy holds the files that run and watch a server in production: a systemd unit, a Dockerfile, compose files,
// a Kubernetes manifest, alert rules for Prometheus and Grafana dashboards. README.md explains them. Package release makes
// binaries, Debian packages and container images. The tests compare them with the server.
package deploy
