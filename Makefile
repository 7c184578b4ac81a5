# make demo    the whole product on an emulated disk, in about five minutes
# make test    every test; those that need root or a tool say so when they are skipped
# make fuzz    every fuzz target for SECONDS, 60 unless given
# make experiments   the paper's experiments on the emulated disk, in about eleven minutes: docs/experiments.md
# make acceleration TRACE=...   a whole trace replayed on the emulated disk, against its representatives; takes as long as the trace
# make install the command, into PREFIX/bin

PREFIX ?= /usr/local
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# What the BPF program, the tests and the emulated disk need beyond a Rust toolchain.
PACKAGES := clang llvm libelf-dev zlib1g-dev pkg-config build-essential util-linux mount libc6-dev \
	qemu-system-x86 busybox-static cpio kmod xz-utils dmsetup e2fsprogs
# Where there is no Rust, Debian's own is installed, as new as its security archive has it.
RUST_PACKAGES := cargo-web rustc-web rust-web-clippy rustfmt-web
RUST := 1.88
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: tables demo experiments acceleration test fuzz lint setup build install bench clean

demo: setup
	cargo build --release --locked --quiet --workspace
	cargo run --release --locked --quiet -p idlewise-testbed --bin idlewise-demo

# docs/experiments.md and experiments/report.html, with a real trace too if the folder IDLEWISE_TRACES has it;
# OPTIONS="--seconds 20" for longer runs
experiments: setup
	cargo build --release --locked --quiet --workspace
	cargo run --release --locked --quiet -p idlewise-testbed --bin idlewise-experiments -- $(OPTIONS)

acceleration: setup
	cargo build --release --locked --quiet --workspace
	cargo run --release --locked --quiet -p idlewise-testbed --bin idlewise-acceleration -- $(TRACE) $(OPTIONS)

test: setup
	@./tests/oracle/setup.sh
	@./testbed/vm/vm.sh --fetch || echo "the tests in the emulated machine will be skipped"
	cargo build --locked --quiet -p idlewise-testbed
	cargo test --locked --workspace
	cargo build --locked --quiet -p idlewise-cli --no-default-features

fuzz: setup
	./fuzz/run.sh $(or $(SECONDS),60)

lint: setup
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

build: setup
	cargo build --release --locked --quiet -p idlewise-cli

install: build
	$(SUDO) install -D -m 755 target/release/idlewise $(DESTDIR)$(PREFIX)/bin/idlewise

# docs/results.md, from the traces in the folder IDLEWISE_TRACES
tables: setup
	cargo bench --locked --quiet -p idlewise --bench tables

bench: setup
	cargo bench --locked --quiet -p idlewise

setup:
	@./testbed/setup.sh "$(PACKAGES)" "$(RUST_PACKAGES)" "$(RUST)"

clean:
	cargo clean
