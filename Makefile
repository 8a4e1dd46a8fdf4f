# Two commands do all: `make demo` and `make test`. Both install what is missing, then build.
.DEFAULT_GOAL := help
SHELL := /bin/bash
JOBS ?= $(shell nproc)
BUILD := build/release
PREFIX ?= /usr/local

.PHONY: help setup configure build install demo test sanitize fuzz stress bench gpu-build gpu-test gpu-tune gpu-bench gpu-regret tidy format clean

help:  ## lists these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ /' | awk '{n=$$1; $$1=""; printf "  %-10s%s\n", n, $$0}'

setup:  ## installs what is missing from the system's packages
	@scripts/setup.sh

configure: setup
	@mkdir -p build
	@cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

build: configure  ## builds everything, the tests included
	@ninja -C $(BUILD) -j$(JOBS)

install: configure  ## installs into PREFIX=/usr/local: the program, the libraries and headers, man pages, completions
	@ninja -C $(BUILD) -j$(JOBS) installed
	@cmake --install $(BUILD) --prefix "$(PREFIX)" >build/install.log || { cat build/install.log; exit 1; }
	@echo "autotune is $(PREFIX)/bin/autotune"
	@wheels=$$(echo "$$PWD"/build/cuda/lib/python3*/site-packages/nvidia/cu13/lib); if [ -d "$$wheels" ]; then \
	  echo "no CUDA toolkit was here when it was built: export AUTOTUNE_NVRTC=$$wheels"; fi

demo: configure  ## tunes a built-in op on the GPU, or shows what there is without one
	@ninja -C $(BUILD) -j$(JOBS) autotune autotune-worker
	@scripts/demo.sh $(BUILD)/bin

test: build  ## builds and runs all tests; those that need a GPU skip by name without one
	@scripts/test.sh $(BUILD) $(JOBS)

sanitize: setup  ## all tests under address and undefined-behaviour sanitizers, then the threaded ones under tsan
	@scripts/sanitize.sh all $(JOBS)

fuzz:  ## each fuzz target for a minute (SECONDS_EACH=...), with libFuzzer
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(JOBS)

stress: build  ## 200 writers and 100 rounds of kill -9 against one database
	@scripts/stress.sh $(BUILD)

bench: build  ## what the cache costs beside what it may (FULL=--full: with a million entries)
	@scripts/cache_bench.sh $(BUILD) $(FULL)

gpu-build: setup  ## programs in build/gpu that need only the C library: to carry to a machine with a GPU
	@mkdir -p build
	@cmake --preset gpu >build/configure-gpu.log 2>&1 || { cat build/configure-gpu.log; exit 1; }
	@ninja -C build/gpu -j$(JOBS) gpu_programs
	@strip $$(find build/gpu/bin -type f) build/gpu/lib/libautotune.so
	@du -chL build/gpu/bin build/gpu/lib/libautotune.so

gpu-test: ## on a machine with a GPU: the test programs, compute-sanitizer on small shapes, then every op beyond 2^31 elements
	@scripts/gpu_test.sh $(BUILD)

gpu-tune: ## on a machine with a GPU: tunes every op at each type and checks what was stored (about 6 minutes)
	@scripts/gpu_tune.sh $(BUILD)

gpu-bench: ## on a machine with a GPU: the benchmark tables
	@scripts/gpu_bench.sh $(BUILD)

gpu-regret: ## on a machine with a GPU: what searches leave on the table (8 minutes)
	@scripts/gpu_regret.sh $(BUILD)

tidy:  ## clang-tidy over all sources
	@scripts/setup.sh tidy
	@mkdir -p build
	@cmake --preset tidy >build/configure-tidy.log 2>&1 || { cat build/configure-tidy.log; exit 1; }
	@ninja -k 0 -C build/tidy -j$(JOBS)

format:  ## formats all C++ code
	@git ls-files '*.h' '*.hpp' '*.cpp' | xargs clang-format -i

clean:  ## removes the build folder
	@rm -rf build
