# Without a target, make lists its targets.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help run build test race faults soak fuzz bench benchmarks lint openapi-lint vuln cross clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Serve the simulated market on http://127.0.0.1:8080; more flags with ARGS="…".
	$(GO) run . serve $(ARGS)

build: ## Build ./strikecache, one static binary.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o strikecache .

test: ## Vet and run every test; fuzz targets run their seeds as ordinary tests.
	$(GO) vet ./...
	$(GO) test -count=1 -timeout 30m ./...

race: ## Run the tests under the race detector.
	$(GO) test -count=1 -timeout 30m -race -short ./...

faults: ## Run the fault tests in full (make test has their short form) and list their figures.
	STRIKECACHE_FULL=1 $(GO) test -count=1 -timeout 60m -run '^TestFault' ./...

soak: ## Run compressed simulated days under load for 20 minutes (make test has a tenth of it).
	STRIKECACHE_FULL=1 $(GO) test -count=1 -timeout 60m -run '^TestSoak' ./bench/e2e

FUZZTIME ?= 30s
fuzz: ## Run every fuzz target for FUZZTIME (30s); an input that fails becomes a seed in testdata/fuzz.
	@targets=$$($(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ {t[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, t[i]; n = 0}') || exit 1; \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package </dev/null || failed="$$failed $$target"; \
	done <<< "$$targets"; \
	if [ -n "$$failed" ]; then echo "fuzz targets that failed:$$failed"; exit 1; fi

bench: ## Measure the server beside its rivals; writes bench/results.json and the tables of bench/README.md.
	$(GO) run ./bench rivals --out bench/results.json --write-readme bench/README.md

benchmarks: ## Run the Go benchmarks, each beside its rival.
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint: ## Run the linters.
	$(GO) run $(GOLANGCI) run ./...

vuln: ## Look for known vulnerabilities in what the binary uses; needs the database at vuln.go.dev.
	@out=$$($(GO) run $(GOVULNCHECK) ./... 2>&1) || failed=1; echo "$$out"; \
	if [[ "$$out" == *"fetching vulnerabilities"* ]]; then echo "NOT CHECKED: the vulnerability database cannot be reached from here"; \
	else exit $${failed:-0}; fi

# Redocly needs a younger Node than most systems have.
NPX := npx --yes -p node@22.21.1 -p @redocly/cli@2.77.0 -p @stoplight/spectral-cli@6.16.3
openapi-lint: ## Lint the OpenAPI document with Redocly and Spectral, from npm.
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true $(NPX) redocly lint --config .ci/redocly.yaml server/openapi/openapi.json
	$(NPX) spectral lint --ruleset .ci/spectral.yaml --fail-severity warn server/openapi/openapi.json

cross: ## Compile for every platform.
	@set -e; for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		echo "$$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./... ; \
	done

clean: ## Remove what was built; stored data stays.
	rm -f strikecache
	$(GO) clean -testcache
