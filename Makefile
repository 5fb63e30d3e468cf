# Anuencia. `make` or `make help` lists what can be done.
SHELL := /bin/bash
.DEFAULT_GOAL := help
GO ?= go
BIN := bin
GOLANGCI_VERSION := v2.15.0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Repetitions of kill and race tests are multiplied by it.
export ANUENCIA_TEST_SCALE ?= 1

.PHONY: help run build test lint fmt check policy-test fuzz bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

run: ## start the demo on the embedded default
	$(GO) run ./cmd/anuencia serve --demo

build: ## build bin/anuencia, static and stripped
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/anuencia ./cmd/anuencia

test: ## run every test, with what they need (PostgreSQL) found, or installed
	ANUENCIA_TEST_RACE=1 .ci/services $(GO) test -race -timeout 18m ./...

policy-test: ## run the Rego tests with their coverage
	$(GO) run ./cmd/anuencia policy test

$(BIN)/golangci-lint-$(GOLANGCI_VERSION):
	@mkdir -p $(BIN)
	GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/golangci-lint $@

lint: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## run the linters and the formatter's check
	$(BIN)/golangci-lint-$(GOLANGCI_VERSION) run ./...
	$(BIN)/golangci-lint-$(GOLANGCI_VERSION) fmt --diff

fmt: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## format the code
	$(BIN)/golangci-lint-$(GOLANGCI_VERSION) fmt

check: lint ## vet, lint, and nothing left to generate or tidy
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) mod verify

fuzz: ## a short run of each fuzz target
	.ci/fuzz 20s

bench: ## cold build, binary, start, idle memory, and the Go benchmarks
	.ci/bench

clean: ## remove what was built
	rm -rf $(BIN) dist
