# What people do with this repository. `make` alone says so.

GO        ?= go
FUZZTIME  ?= 30s
CAPTURES  ?= ../shared/captures
PACKAGES  := ./...
BEFORE    ?= HEAD
PRELOAD   ?= bin/libsheafkeylog.so

.PHONY: help build passt preload test race lint fuzz bench frames mutants demo e2e captures recorded

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## build bin/sheaf
	$(GO) build -trimpath -o bin/sheaf ./tools/sheaf

passt: ## build bin/passt, which QEMU's -netdev passt starts in passt's place; docs/vm.md
	$(GO) build -trimpath -o bin/passt ./tools/passt

preload: ## build bin/libsheafkeylog.so, which has programs with OpenSSL write a key log; docs/tls.md
	@mkdir -p $(dir $(PRELOAD))
	gcc -shared -fPIC -O2 -Wall -Wextra -Werror -o $(PRELOAD) tools/keylog/preload/keylog.c -ldl

test: lint ## run the linters and all tests, and say which were skipped and why
	CAPTURES=$(CAPTURES) $(GO) run ./tools/gotest $(PACKAGES)

race: ## the packages that have goroutines, under the race detector; 3 minutes
	$(GO) run ./tools/gotest -race ./engine ./engine/keylog ./netstack ./netstack/firsthop ./netstack/link ./netstack/vhostuser ./netstack/vsock ./tunnel ./tools/demo

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not gofmt-ed:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)
	$(GO) tool staticcheck $(PACKAGES)

fuzz: ## run every fuzz target for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) GO=$(GO) ./tools/fuzz.sh

bench: ## README's table of sizes, and speed, in one run
	$(GO) run ./tools/bench $(if $(wildcard $(CAPTURES)/full),-captures $(CAPTURES))

frames: ## whether the working tree writes, byte for byte, the frames of the commit BEFORE; 3 minutes
	@CAPTURES=$(CAPTURES) GO=$(GO) ./tools/frames.sh $(BEFORE)

mutants: ## put small bugs into the core, one at a time: do its tests notice? 10 minutes
	$(GO) run ./tools/mutants

demo: build ## a broker, 100 subscribers, two gateways; no root, 15 s
	./bin/sheaf demo

# The services that Debian starts with some of the packages are in nobody's way:
# the tests start brokers of their own in namespaces of their own.
e2e: ## real clients and real brokers in network namespaces; root, installs from Debian, 23 minutes
	apt-get update -q && apt-get install -qy mosquitto mosquitto-clients nats-server redis-server rabbitmq-server iproute2 ethtool tcpdump iputils-ping traceroute iperf3 nftables gcc libc6-dev make
	apt-get install -qy --no-install-recommends qemu-system-x86
	E2E=1 $(GO) run ./tools/gotest ./e2e -count=1 -v -timeout 35m

captures: ## make the simulated captures in testdata/ anew
	$(GO) run ./tools/mkcapture -dir testdata

recorded: ## record real clients and brokers into testdata/recorded anew, and README's table of them; 4 minutes
	$(GO) run ./tools/mkcapture -record testdata/recorded
	$(GO) run ./tools/bench -only sizes -readme README.md
