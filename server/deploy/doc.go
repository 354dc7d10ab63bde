// Package deploy holds the files that run and watch a server in production: a systemd unit, a Dockerfile, a compose file,
// alert rules for Prometheus and a Grafana dashboard. README.md explains them. The tests compare them with the server.
package deploy
