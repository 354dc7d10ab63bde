// Package deploy holds what runs and watches a server in production: a systemd unit, a Dockerfile, alert rules for
// Prometheus and a Grafana dashboard. Its tests hold them against the server as it is.
package deploy
