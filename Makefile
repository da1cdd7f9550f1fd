# `make run` and `make test` set up all they need: Python 3.11+ with venv, and cargo.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BUILT := $(VENV)/.built
TESTED := $(VENV)/.tested
RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
FUZZ_SECONDS ?= 600
TARGET ?= reader
FROM ?= 0
PEERS ?= torch mindspore hta xprof
NEEDING_torch := torch,jax,ray,triton
NEEDING_mindspore := mindspore
NEEDING_hta := hta,pydot
NEEDING_xprof := xprof
WALKED ?= 20000
# Cargo counts its own jobs: it is not given those of make.
ALONE := env -u MAKEFLAGS -u MFLAGS
# Tests start hundreds of processes: each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run docs test test-rust lint test-python test-real-time test-long fuzz fuzz-coverage walk weight audit test-real test-peers bench-read bench-truth bench-quiet bench-commands bench-path bench-tables bench-runner bench-extract bench-chakra bench-compare bench-diff bench-tune clean tools

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

tools: # name what is missing before anything fails halfway
	@command -v $(PYTHON) >/dev/null || { echo "missing: python3 (3.11 or later)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "missing: Python 3.11 or later ($(PYTHON) is older)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "missing: the venv module (Debian: apt install python3-venv)" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "missing: cargo (https://rustup.rs)" >&2; exit 1; }
	@cargo fmt --version >/dev/null 2>&1 || { echo "missing: rustfmt (rustup component add rustfmt)" >&2; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo "missing: clippy (rustup component add clippy)" >&2; exit 1; }

$(READY): requirements-dev.lock | tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.lock
	@touch $@

$(BUILT): $(READY) $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile release --locked --quiet >/dev/null
	@touch $@

# Tests take the core of `make run` if it is new enough, else one that is sooner compiled.
$(TESTED): $(READY) $(RUST_SOURCES) pyproject.toml
	@test -e $(BUILT) && test -z "$$(find $^ -newer $(BUILT))" || { rm -f $(BUILT) && \
		$(ALONE) VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile checks --locked --quiet >/dev/null; }
	@touch $@

run: $(BUILT) ## set up, build, and explain an example trace
	$(BIN)/longpole demo .build/longpole-demo --force

docs: $(BUILT) ## build the documentation site in .build/site
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -q -E -b html docs .build/site
	@echo "built .build/site/index.html"

test: $(READY) ## set up, build, and check everything
	@$(MAKE) --no-print-directory --jobs=3 test-rust lint test-python
	@$(MAKE) --no-print-directory test-real-time

test-rust: tools
	cargo fmt --all --check
	$(ALONE) cargo clippy --profile checks --workspace --all-targets --locked --quiet -- -D warnings
	$(ALONE) cargo test --profile checks --locked --quiet
	$(ALONE) RUSTDOCFLAGS=-Dwarnings cargo doc --profile checks --no-deps --locked --quiet

lint: $(TESTED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-python: $(TESTED)
	$(BIN)/python -m mypy.stubtest longpole._core
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not real_time"

test-real-time: $(TESTED) # alone, after all others
	$(BIN)/pytest -m "real_time and not slow"

test-long: $(TESTED) audit walk ## the checks that take minutes
	cargo test --release --locked -- --include-ignored
	cargo run --release --locked --quiet -p longpole-fuzz --bin fuzz -- $(FUZZ_SECONDS)
	$(BIN)/pytest -n 2 --timeout 1200 --hypothesis-profile search
	$(BIN)/python tests/oracles/mutations.py

fuzz: tools ## look for inputs that are not survived; FUZZ_SECONDS=600, TARGETS=all, FROM=a seed
	cargo run --release --locked --quiet -p longpole-fuzz --bin fuzz -- $(FUZZ_SECONDS) --from $(FROM) $(TARGETS)

fuzz-coverage: tools ## the same guided by coverage, which grows the corpus: TARGET=reader
	@cargo fuzz --version >/dev/null 2>&1 || { echo "missing: cargo-fuzz (cargo install cargo-fuzz)" >&2; exit 1; }
	@cargo +nightly --version >/dev/null 2>&1 || { echo "missing: a nightly toolchain (rustup toolchain install nightly)" >&2; exit 1; }
	@mkdir -p rust/longpole-fuzz/corpus/$(TARGET)
	cargo +nightly fuzz run --fuzz-dir rust/longpole-fuzz/libfuzzer $(TARGET) rust/longpole-fuzz/corpus/$(TARGET) -- -max_total_time=$(FUZZ_SECONDS) -timeout=5 -rss_limit_mb=2048

walk: $(TESTED) ## ask commands, tables and tools about damaged inputs; WALKED=20000, FROM=a seed
	PYTHONPATH=tests $(BIN)/python -m oracles.walker $(WALKED) --seed $(FROM)

weight: $(BUILT) ## print how much code, and how many commands, tables and options there are
	$(BIN)/python tests/oracles/weight.py

audit: $(READY) ## licences and sources of all dependencies; advisories where their database is
	$(BIN)/python tests/oracles/audit.py

test-real: $(TESTED) ## what `make test` skips for want of a package, with the packages, in .venv-real
	$(BIN)/python tests/oracles/environment.py real -n 2 -m "not slow" --beyond=$(BIN)/python

test-peers: $(TESTED) ## the same with torch, MindSpore, HTA, Chakra and XProf; PEERS names the groups
	$(foreach group,$(PEERS),$(BIN)/python tests/oracles/environment.py $(group) -m "not slow" --beyond=$(BIN)/python --needing=$(NEEDING_$(group)) && )true

bench-read: $(BUILT) ## time the reader against its peers
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/bench_read.py

bench-truth: $(BUILT) ## how often paths and verdicts are right: simulated programs, real processes
	$(BIN)/python benches/bench_truth.py
	$(BIN)/python benches/bench_verdicts.py
	$(BIN)/python benches/bench_verdicts.py --load

bench-quiet: $(BUILT) ## how often verdicts are right, in 8 minutes of a quiet machine
	$(BIN)/python -m pip install --quiet pyperf
	$(BIN)/python benches/bench_verdicts.py --minutes 6.8

bench-extract: $(BUILT) ## time extraction against Python's re
	$(BIN)/python benches/bench_extract.py

bench-chakra: $(BUILT) ## measure linking and converting; ET and KINETO name the pair
	$(BIN)/python benches/bench_chakra.py --et $(ET) --kineto $(KINETO) --copies 1 4 16 62

bench-runner: $(BUILT) ## measure what the runner costs beside its jobs
	$(BIN)/python benches/bench_runner.py

bench-compare: $(BUILT) ## how often a comparison is right, on simulated runs
	$(BIN)/python benches/bench_compare.py
	$(BIN)/python benches/bench_noise.py

bench-tune: $(BUILT) ## how much of an exhaustive search a search measures, and how good its choice is
	$(BIN)/python benches/bench_tune.py

bench-diff: $(BUILT) ## how often a comparison of two traces is right, on simulated runs
	$(BIN)/python benches/bench_diff.py

bench-commands: $(BUILT) ## time commands as whole processes
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/bench_commands.py

bench-path: $(BUILT) ## time the critical path, on a trace and on a graph of 10 million nodes
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/bench_path.py
	cargo bench --locked --bench critical_path

bench-tables: $(BUILT) ## time every table after reading, and HTA where it is installed
	$(BIN)/python benches/bench_tables.py

clean: ## remove what was built
	rm -rf $(VENV) .venv-* .build target
