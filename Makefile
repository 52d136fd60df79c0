# What people do with this repository. `make` alone says so.

GO        ?= go
FUZZTIME  ?= 30s
CAPTURES  ?= ../shared/captures
PACKAGES  := ./...

.PHONY: help build test lint fuzz bench demo e2e captures

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## build bin/sheaf
	$(GO) build -trimpath -o bin/sheaf ./tools/sheaf

test: lint ## run the linters and all tests
	$(GO) test $(PACKAGES)

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not gofmt-ed:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)
	$(GO) tool staticcheck $(PACKAGES)

fuzz: ## run every fuzz target for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) GO=$(GO) ./tools/fuzz.sh

bench: ## sizes against zstd and speed, in one run
	$(GO) run ./tools/bench -captures $(CAPTURES)

demo: build ## a broker, 100 subscribers, two gateways; no root, 15 s
	./bin/sheaf demo

e2e: build ## every capture through the built program, with several windows
	@for w in 0 100us 5ms 50ms 1s; do \
		./bin/sheaf replay --json --window $$w testdata/*.pcap* $$(find $(CAPTURES)/live -name '*.pcap' 2>/dev/null) > /dev/null || exit 1; \
		echo "window $$w: identical"; \
	done

captures: ## make the captures in testdata/ anew
	$(GO) run ./tools/mkcapture -dir testdata
