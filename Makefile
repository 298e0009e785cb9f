# make run    opens the viewer; without a display it renders the comparison into out/
# make test   formatting, lints, tests; prints how long each group took

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build simulate pictures figures test forget-times checked lint bench format clean system-packages toolchain lint-tools

# The scene for `make simulate` and for `make run` without a display; the viewer has a default of its own.
SCENE ?=
OUT ?= out
CARGO_FLAGS := --release --locked
GLUG := $(or $(CARGO_TARGET_DIR),target)/release/glug

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

run: build ## open the viewer; without a display, render the comparison into OUT
	@if [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]; then \
		$(GLUG) view $(SCENE); \
	else \
		echo "There is no display: rendering the comparison without one (this draws on the processor)."; \
		mkdir -p $(OUT); \
		$(GLUG) render $(SCENE) --out $(OUT)/comparison.mp4; \
		ffmpeg -hide_banner -loglevel error -y -i $(OUT)/comparison.mp4 -vf fps=2 $(OUT)/comparison_%02d.png; \
		echo "The clip is $(OUT)/comparison.mp4, its pictures are $(OUT)/comparison_*.png."; \
	fi

build: system-packages toolchain ## compile
	cargo build $(CARGO_FLAGS)

simulate: build ## simulate SCENE and write its surface and statistics to OUT/SCENE
	$(GLUG) run $(or $(SCENE),dam_break) --out $(OUT)/$(or $(SCENE),dam_break) \
		--stats $(OUT)/$(or $(SCENE),dam_break)/stats.jsonl

# SCENE:CELLS:FRAME of the pictures in the README, and layers where other ones than usual are shown.
PICTURES := dam_break:96:14:pressure splash_tank:96:18 faucet:64:45:bubble-colours ball_in_circle_2d:256:18 rising_bubbles:64:12 \
	splash_tank_tiles:96:11:bubble-colours,tiles,bands pool_tiles_2d:128:24:bubble-colours,tiles,affine-field \
	floating_boxes:64:40 paddle_wheel_2d:128:60 stirred_smoke:48:75 paddle_smoke_2d:160:75
# SCENE:CELLS:FRAME of the comparisons in the README.
COMPARISONS := water_cooler_2d:128:40 water_cooler:64:40 cup_under_water_2d:100:150
# SCENE:CELLS:FRAME of the gallery's thumbnails, and layers.
THUMBNAILS := water_cooler_2d:128:40 rising_bubble_2d:128:24 bubble_tube_2d:128:40 diving_bell_2d:128:70 \
	released_bubble_2d:128:12 dam_break_2d:256:24 ball_in_circle_2d:128:18 \
	ball_in_circle_whole_2d:128:30:bubble-colours,tiles ball_in_circle_tiles_2d:128:30:bubble-colours,tiles \
	pool_tiles_2d:128:24:bubble-colours,tiles light_bubble_2d:128:9 neutral_bubble_2d:128:12 heavy_bubble_2d:128:20 \
	released_heavy_bubble_2d:128:14 tilted_tank_2d:96:1 vortex_box_2d:96:30:velocity \
	water_cooler:40:40 rising_bubbles:40:12 dam_break:48:40 splash_tank:48:16 faucet:48:70 carbonated_glass:40:30 \
	bubble_tube:40:20 wall_with_holes:40:30 moving_platform:40:30 released_bubble:40:8 \
	floating_boxes:48:40 piston_on_air:32:30 cup_under_water:32:66 ice_in_a_glass:36:66 cartesian_diver:40:64 \
	cork_and_bubbles:48:86 duck_pond:60:40 \
	floating_boxes_2d:144:40 cup_under_water_2d:100:40 cartesian_diver_2d:80:75 \
	stirred_smoke:32:60 paddle_smoke_2d:128:60 \
	paddle_wheel_2d:128:45 seesaw_2d:144:45 ball_and_hole_2d:72:12 wall_splash_2d:128:20 ceiling_drip_2d:128:14 \
	splash_tank_tiles:64:16:bubble-colours,tiles sinking_bubbles:40:16:bubble-colours,cutaway \
	neutral_bubble:40:12:bubble-colours,cutaway released_heavy_bubble:40:14:bubble-colours,cutaway

pictures: build ## simulate and draw the pictures of README and gallery anew (minutes)
	@mkdir -p docs/images assets/thumbnails
	@for entry in $(PICTURES); do \
		IFS=: read -r scene cells frame layers <<<"$$entry"; \
		$(GLUG) render "$$scene" --cells "$$cells" --frames "$$frame" $${layers:+--layers $$layers} \
			--out "docs/images/$$scene.png"; \
	done
	@for entry in $(THUMBNAILS); do \
		IFS=: read -r scene cells frame layers <<<"$$entry"; \
		$(GLUG) render "$$scene" --cells "$$cells" --frames "$$frame" $${layers:+--layers $$layers} --plain --size 320x200 \
			--out "assets/thumbnails/$$scene.png"; \
	done
	@for entry in $(COMPARISONS); do \
		IFS=: read -r scene cells frame <<<"$$entry"; \
		$(GLUG) render "$$scene" --cells "$$cells" --frames "$$frame" --model free-surface --compare constraint \
			--out "docs/images/$$scene.png"; \
	done
	$(GLUG) render rising_bubbles --cells 64 --frames 12 --panels --size 1440x860 --out docs/images/panels.png

figures: build ## simulate, draw and measure what the paper's figures show: docs/figures.md (minutes)
	$(GLUG) figures --out docs

# The core without the window, with debug assertions: fast paths are checked against slow ones.
CHECKED_FLAGS := --profile checked --locked --no-default-features
# A word in the names of the benches to run; all if empty.
ONLY ?=

test: forget-times lint checked ## formatting, lints and all tests
	.ci/timed --groups library $(CARGO_FLAGS) --lib
	.ci/timed --groups behaviour $(CARGO_FLAGS) --test behaviour
	.ci/timed "memory" cargo test $(CARGO_FLAGS) --test allocation
	.ci/timed "window" cargo test $(CARGO_FLAGS) --test viewer --bins
	.ci/timed "examples in the documentation" cargo test $(CARGO_FLAGS) --doc
	@.ci/timed --sum

forget-times:
	@rm -f $(or $(CARGO_TARGET_DIR),target)/test-times

# Groups of tests in which fast paths run beside slow ones, and all models step once; long simulations would add nothing.
CHECKED_GROUPS := boundary:: every_scene geometry:: linear:: liquid:: phases::projection pressure:: random_scenes \
	surface:: tiles:: bubbles::fill bubbles::dense bubbles::projection
# What of them takes long all the same.
UNCHECKED := tiles::waves tiles::reduced

checked: system-packages toolchain ## tests of the core with debug assertions
	.ci/timed "checked: compiling" cargo test $(CHECKED_FLAGS) --lib --test behaviour --no-run
	.ci/timed "checked library" cargo test $(CHECKED_FLAGS) --lib
	.ci/timed "checked behaviour" cargo test $(CHECKED_FLAGS) --test behaviour -- $(CHECKED_GROUPS) $(UNCHECKED:%=--skip %)

lint: system-packages toolchain lint-tools ## formatting and lints
	cargo fmt --check
	.ci/timed "lints" cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	.ci/timed "lints without the window" cargo clippy $(CARGO_FLAGS) --no-default-features --all-targets -- -D warnings

bench: toolchain ## measure stages and solver on fixed scenes; ONLY=word for some of them
	cargo bench --locked --no-default-features --bench step --bench solve -- $(ONLY)

format: toolchain lint-tools ## format the sources
	cargo fmt

clean: ## remove build and simulation output
	rm -rf target out

# gcc links; the headers are for Wayland and keyboards; mesa draws on the processor where there is no graphics card;
# ffmpeg writes videos; Xvfb and xdotool are the virtual screen and the hand of the window's test.
PACKAGES := gcc libc6-dev pkg-config libwayland-dev libxkbcommon-dev libxkbcommon-x11-0 libx11-6 libx11-xcb1 \
	libxcursor1 libxi6 libxrandr2 libvulkan1 mesa-vulkan-drivers ffmpeg xvfb xdotool

system-packages:
	@if command -v dpkg-query >/dev/null; then \
		missing=""; \
		for package in $(PACKAGES); do \
			dpkg-query -W -f='$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
		done; \
		if [ -n "$$missing" ]; then \
			echo "Installing$$missing"; \
			sudo=""; [ "$$(id -u)" -eq 0 ] || sudo=sudo; \
			$$sudo apt-get update -qq; \
			$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
		fi; \
	elif ! command -v cc >/dev/null; then \
		echo "A C compiler is missing (cc); please install one, and the development files of Wayland and xkbcommon." >&2; \
		exit 1; \
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
