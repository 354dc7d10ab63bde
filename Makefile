# Without a target, make lists its targets.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
KUBECTL_VALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
OPERATOR := github.com/prometheus-operator/prometheus-operator@v0.85.0
GOTESTSUM := gotest.tools/gotestsum@v1.13.0

.PHONY: help run build test race faults soak fuzz bench benchmarks lint openapi-lint manifest-lint vuln cross release clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The server replaces the shell, so that make waits for the server after Ctrl-C and reports its exit code.
run: build ## Serve the simulated market on http://127.0.0.1:8080; ARGS="…" adds flags.
	@exec ./strikecache serve $(ARGS)

build: ## Build ./strikecache, one static binary.
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o strikecache .

# gotest runs go test with the arguments $(1), after the command $(2). It prints a line per package and per test of bench/e2e as
# each ends, and how many tests have passed at least every 10 seconds. Then come the skipped tests by reason, the figures that tests
# report, and last the failed tests with their messages. go test would vet all code again, for 27 s of processor time in a new clone.
# Many tests wait for other processes or for limits: so packages are tested two more at once than there are processors.
define gotest
@log=$$(mktemp); while sleep 8 >/dev/null 2>&1; do echo "$$SECONDS s: $$(grep -c '"Action":"pass".*"Test":' "$$log") tests passed"; done & \
trap "kill $$!; rm -f $$log" EXIT; \
$(2) $(GO) run $(GOTESTSUM) --format testname --hide-summary all --jsonfile "$$log" -- -count=1 -vet=off -p $$(($$(getconf _NPROCESSORS_ONLN) + 2)) $(1) | \
	awk '/^(PASS|SKIP) bench\/e2e\.[^\/]*$$/ || !/^((PASS|SKIP) ([^ ]*\.)?(Test|Fuzz|Example)|EMPTY|DONE)/ {print; fflush()}'; code=$$?; \
awk -F '"' '/"Action":"output"/ && /_test.go:[0-9]+: / {split($$0, said, /_test.go:[0-9]+: /); sub(/\\n"}$$/, "", said[2]); last[$$12 $$16] = said[2]} \
	/"Action":"skip"/ && /"Test":/ {why = last[$$12 $$16]; n[why]++; tests[why] = tests[why] " " $$16} \
	/figure: / {sub(/.*figure: /, ""); sub(/\\n"}$$/, ""); print "figure: " $$0} \
	END {for (why in n) print "skipped: " n[why] "×, " why ":" tests[why]}' "$$log"; \
$(GO) run $(GOTESTSUM) --format none --hide-summary skipped --raw-command -- cat "$$log"; exit $$code
endef

test: ## Vet and run every test, the long tests in a short form; failed tests are named last.
	$(call gotest,-timeout 60m ./...,$(GO) vet ./... &&)

# Left out is what one goroutine does: compute, the simulated market but for one test, and generated files.
race: ## Run the tests of concurrent code, and tests of the binary, under the race detector.
	$(call gotest,-timeout 30m -race -short . $(addprefix ./refresh,/ /cboe /feed /fleet /folder) $(addprefix ./server,/ /admin /keys /limits /lines /loop /mcp /watch) ./snapshots)
	$(call gotest,-timeout 30m -race -run '^Test(ConcurrentUse|FirstStart|TLS|Keys|FaultDrain|SecondSignal)$$' ./refresh/simulated ./bench/e2e)

faults: ## Run the fault tests in full and list their figures; make test runs a short form of them.
	$(call gotest,-timeout 60m -run '^TestFault' ./...)

soak: ## Run simulated days under load for 20 minutes.
	$(call gotest,-timeout 60m -run '^TestSoak' ./bench/e2e)

faults soak: export STRIKECACHE_FULL := 1

FUZZTIME ?= 30s
fuzz: ## Run every fuzz target for FUZZTIME (30s); make test then runs each input that failed.
	@targets=$$($(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ {t[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, t[i]; n = 0}') || exit 1; \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package </dev/null || failed="$$failed $$target"; \
	done <<< "$$targets"; \
	if [ -n "$$failed" ]; then echo "fuzz targets that failed:$$failed"; exit 1; fi

bench: ## Compare with other servers; writes bench/results.json and the tables of bench/README.md.
	$(GO) run ./bench rivals --out bench/results.json --write-readme bench/README.md

benchmarks: ## Run the Go benchmarks, each beside the benchmark of a comparable library.
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint: ## Run the linters.
	$(GO) run $(GOLANGCI) run ./...

# The operator's module has the schema of the ServiceMonitor, kubectl-validate the others.
manifest-lint: ## Check the Kubernetes manifest against the schemas of Kubernetes and of the Prometheus operator.
	@crds=$$(mktemp -d); trap 'rm -rf "$$crds"' EXIT; \
	dir=$$($(GO) mod download -json $(OPERATOR) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	cp "$$dir"/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml "$$crds" && \
	$(GO) run $(KUBECTL_VALIDATE) --version 1.30 --local-crds "$$crds" server/deploy/kubernetes.yaml

vuln: ## Look for known vulnerabilities in the code of the binary; needs the database at vuln.go.dev.
	@out=$$($(GO) run $(GOVULNCHECK) ./... 2>&1) || failed=1; echo "$$out"; \
	if [[ "$$out" == *"fetching vulnerabilities"* ]]; then echo "NOT CHECKED: the vulnerability database cannot be reached from here"; \
	else exit $${failed:-0}; fi

# Redocly needs a newer Node than most systems have.
NPX := npx --yes -p node@22.21.1 -p @redocly/cli@2.77.0 -p @stoplight/spectral-cli@6.16.3
openapi-lint: ## Lint the OpenAPI document with Redocly and Spectral, from npm.
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true $(NPX) redocly lint --config .ci/redocly.yaml server/openapi/openapi.json
	$(NPX) spectral lint --ruleset .ci/spectral.yaml --fail-severity warn server/openapi/openapi.json

cross: ## Compile for every platform.
	@set -e; for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		echo "$$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -o /dev/null ./... ; \
	done

release: ## Write binaries for every platform, Debian packages, container images and SHA256SUMS into dist.
	@$(GO) run ./server/deploy/release

clean: ## Remove the binary, dist and the test cache; stored data stays.
	rm -rf strikecache dist
	$(GO) clean -testcache
