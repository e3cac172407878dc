SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

GO ?= go
# Further arguments of `make run`, for example ARGS='--data-dir other'.
ARGS ?=

# Tools are pinned here and installed under bin; protoc plugins are pinned in
# go.mod, buf where the code is generated.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/tools/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint

# Every test run is whole and in random order; a failure prints its order.
TEST := $(GO) test -count=1 -shuffle=on
TEST_TIMEOUT := 45m

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: build
build: prepare-build ## Build bin/taskring
	@[ -e bin/taskring ] || echo "building bin/taskring (about a minute the first time)"
	@$(GO) build -o bin/taskring ./cmd/taskring

.PHONY: run
run: build ## Start a node with its data in ./taskring-data (ARGS='...' for more flags)
	@exec bin/taskring server $(ARGS)

.PHONY: test
test: prepare generated lint arch race alloc ## What a change has to pass: generated code, lint, house rules, all tests
	@.ci/summary

.PHONY: test-long
test-long: export TASKRING_LONG := 1
test-long: TEST_TIMEOUT := 24h
test-long: test ## The same, with every seed, round and file (hours)

.PHONY: check
check: test bench-module tidy clean-tree ## test, the benchmark module, tidy go.mod, nothing uncommitted

.PHONY: bench
bench: build ## Measure the three modes and the ring, write docs/performance.md and the tables of docs/routing.md
	@$(GO) run ./tests/performance -taskring bin/taskring -out docs/performance.md
	@$(GO) run ./tests/ringtables -out docs/routing.md

.PHONY: generate
generate: prepare-build ## Write generated code and pages anew
	@$(GO) generate -run bufbuild ./...
	@$(GO) generate -skip bufbuild ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the Go files
	@$(GOLANGCI) fmt

.PHONY: lint
lint: $(GOLANGCI) ## Lint only
	@echo "== lint"
	@$(GOLANGCI) run ./...

.PHONY: stats
stats: ## Print sizes, widths and ratios of the code, and say what each line is
	@$(GO) run ./tests/arch/stats

# Below: the steps of the targets above.

.PHONY: prepare-build
prepare-build:
	@.ci/prepare build

.PHONY: prepare
prepare:
	@.ci/prepare test

.PHONY: generated
generated:
	@echo "== generated code and pages are up to date"
	@.ci/generated

.PHONY: arch
arch:
	@echo "== house rules"
	@$(TEST) ./tests/arch/...

.PHONY: race
race:
	@echo "== all tests, with the race detector"
	@mkdir -p bin
	@$(TEST) -race -timeout $(TEST_TIMEOUT) ./... 2>&1 | tee bin/test.log || { .ci/summary; exit 1; }

# The race detector allocates by itself: tests that count allocations are built
# without it only. These are run here, and no others a second time.
.PHONY: alloc
alloc:
	@echo "== tests that count allocations, without the race detector"
	@mkdir -p bin
	@.ci/alloc $(TEST) 2>&1 | tee bin/alloc.log

.PHONY: bench-module
bench-module:
	@if [ -f tests/bench/go.mod ]; then echo "== tests/bench"; cd tests/bench; $(GO) vet ./...; $(TEST) ./...; fi

.PHONY: tidy
tidy:
	@echo "== go.mod is tidy"
	@$(GO) mod tidy -diff
	@$(GO) mod verify

.PHONY: clean-tree
clean-tree:
	@echo "== nothing uncommitted"
	@changed=$$(git status --porcelain); if [ -n "$$changed" ]; then echo "$$changed"; echo "commit or remove these"; exit 1; fi

$(GOLANGCI): Makefile
	@echo "installing golangci-lint $(GOLANGCI_VERSION) under bin/tools (about three minutes the first time)"
	@GOBIN=$(CURDIR)/$(@D) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@
