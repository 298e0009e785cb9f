# make run    simulates a dam break and writes its surface to out/dam_break/
# make test   formatting, lints, tests

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build pictures test lint format clean system-packages toolchain lint-tools

SCENE ?= dam_break
OUT ?= out/$(SCENE)
# Nothing needs the window yet: one set of features serves run and test, so that everything is compiled once.
CARGO_FLAGS := --release --locked

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

run: build ## simulate SCENE (dam_break) and write its surface and statistics to OUT
	cargo run $(CARGO_FLAGS) --quiet -- run $(SCENE) --out $(OUT) --stats $(OUT)/stats.jsonl

build: system-packages toolchain ## compile
	cargo build $(CARGO_FLAGS)

# SCENE:CELLS:FRAME of every picture.
PICTURES := dam_break:96:44 splash_tank:96:18 ball_in_circle_2d:256:18

pictures: build ## simulate and draw the pictures in docs/images/ anew (minutes)
	@mkdir -p docs/images
	@for entry in $(PICTURES); do \
		IFS=: read -r scene cells frame <<<"$$entry"; \
		echo "$$scene"; \
		cargo run $(CARGO_FLAGS) --quiet -- run "$$scene" --cells "$$cells" --frames "$$frame" \
			--out "out/pictures/$$scene" --export png --quiet; \
		cp "out/pictures/$$scene/$$(printf 'picture_%04d.png' "$$frame")" "docs/images/$$scene.png"; \
	done

test: lint ## formatting, lints and all tests
	cargo test $(CARGO_FLAGS)
	cargo check $(CARGO_FLAGS) --no-default-features

lint: system-packages toolchain lint-tools ## formatting and lints
	cargo fmt --check
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings

format: toolchain lint-tools ## format the sources
	cargo fmt

clean: ## remove build and simulation output
	rm -rf target out

# The Rust compiler links with the C compiler.
system-packages:
	@if ! command -v cc >/dev/null; then \
		sudo=""; [ "$$(id -u)" -eq 0 ] || sudo=sudo; \
		if ! command -v apt-get >/dev/null; then \
			echo "A C compiler is missing (cc); please install one." >&2; exit 1; \
		fi; \
		$$sudo apt-get update -qq; \
		$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev; \
	fi

toolchain:
	@if ! command -v cargo >/dev/null; then \
		echo "Rust is missing: please install Rust 1.95 or newer, for example with rustup." >&2; exit 1; \
	fi

lint-tools:
	@for tool in fmt:rustfmt clippy:clippy; do \
		if ! cargo "$${tool%%:*}" --version >/dev/null 2>&1; then \
			if command -v rustup >/dev/null; then rustup component add "$${tool##*:}"; \
			else echo "Please install $${tool##*:} (cargo $${tool%%:*})." >&2; exit 1; fi; \
		fi; \
	done
