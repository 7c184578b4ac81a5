# make demo    the whole product on an emulated disk, in about three minutes after the build
# make test    every test; those that need root or a tool say so when they are skipped
# make fuzz    every fuzz target for SECONDS, 60 unless given
# make experiments   the paper's experiments on the emulated disk, in about eleven minutes: docs/experiments.md
# make promise   whether the goal is kept beside loads of many kinds, on four kinds of emulated disks, in about three hours: docs/promise.md;
#                OPTIONS=--resume goes on with one that was interrupted, OPTIONS="--together 3" plays on all disks at the same time
# make commands   tar, rsync and fio beside foreground loads on a file system, held back in several ways, in about 70 minutes:
#                docs/commands.md; OPTIONS="--fs xfs --resume" adds another file system, "--seconds 10" takes a shorter time
# make acceleration   whole traces replayed on emulated disks, against their plans, in about eighty minutes: docs/acceleration.md;
#                TRACE=... takes that trace, OPTIONS=--resume goes on with one that was interrupted
# make deadlines   docs/deadlines.md, from real traces: whether disks are verified in time
# make month   a month of the service on 40 disks in the emulated machine, with a clock that is sped up, in about half an hour: what it holds
# make deny    licences, sources and known faults of everything that is depended on
# make publishable   each crate as a registry would get it
# make bench-key-value   reads of a key-value store beside its compaction on the emulated disk, in about twenty minutes: docs/embedding.md
# make docs    the documents as a site, in target/book, with its links checked
# make wheel   the Python package, in target/wheels, checked: docs/python.md
# make install the command into PREFIX/bin, with its manual pages and completions
# make dist    packages of a static command, for x86-64 or, with ARCH=aarch64, for arm64, in target/packages
# make test-packages   installs, uses and removes the .deb in a bare system (root, debootstrap): Debian's stable, or SUITE=bullseye

PREFIX ?= /usr/local
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# What building the command needs beyond a Rust toolchain: the compiler of the BPF program, and what libbpf and zstd are built with.
BUILD_PACKAGES := clang gcc libc6-dev libelf-dev make pkg-config zlib1g-dev
# What the emulated disk needs besides.
DISK_PACKAGES := e2fsprogs mount util-linux
# What is run in the background beside it.
COMMAND_PACKAGES := $(DISK_PACKAGES) fio rsync xfsprogs
# What the tests need besides: the emulated machine, and file systems.
TEST_PACKAGES := $(DISK_PACKAGES) btrfs-progs busybox-static cpio dmsetup fio kmod qemu-system-x86 xfsprogs xz-utils
# Where there is no Rust, Debian's own is installed, as new as its security archive has it.
RUST_PACKAGES := cargo-web rustc-web
LINT_PACKAGES := rust-web-clippy rustfmt-web
RUST := 1.88
MDBOOK := 0.5.4
DENY := 0.20.2
# The example of an embedder is a workspace of its own: its store needs a newer Rust than the rest.
STORE := --manifest-path examples/key-value-store/Cargo.toml
STORE_RUST := 1.90
STORE_TARGET := --target-dir $(or $(CARGO_TARGET_DIR),target)
with_store = if printf '%s\n' $(STORE_RUST) "$$(rustc --version | cut -d ' ' -f 2)" | sort -VC; then $(1); \
	else echo "the key-value store is skipped: it needs Rust $(STORE_RUST)"; fi
export PATH := $(HOME)/.cargo/bin:$(PATH)
# The libraries that crates bring are built with make too: they must not be installed into our DESTDIR.
MAKEOVERRIDES :=
unexport DESTDIR PREFIX ARCH

ARCH ?= x86_64
# What packages are made and checked with; those for arm64, which Debian has for a foreign architecture.
DIST_PACKAGES := binutils debootstrap dpkg-dev lintian mandoc python3 rpm
DIST_PACKAGES_aarch64 := gcc-aarch64-linux-gnu libc6-dev-arm64-cross libelf-dev:arm64 qemu-user-static zlib1g-dev:arm64
# `--version` has the commit, where git knows it.
demo experiments promise commands commands-in-machine acceleration bench-key-value build install dist: export IDLEWISE_COMMIT := \
	$(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
# Always the whole workspace: a build of one package resolves other features, and would compile again what is there.
# The Python package is built by `make wheel`.
RELEASE = @echo "Building the release: about 3 minutes on 2 cores from nothing, seconds after that."; \
	cargo build --release --locked --workspace --exclude idlewise-python
BUILT := $(or $(CARGO_TARGET_DIR),target)/release
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: wheel deny docs publishable tables deadlines month writing demo experiments promise commands commands-in-machine acceleration bench-key-value test fuzz lint setup setup-build setup-disk build install dist test-packages bench clean

# As the tests are built: what is compiled for the one is there for the other.
demo: setup-disk
	@echo "Building: about 3 minutes on 2 cores from nothing, seconds after that."
	cargo build --locked --workspace --bin idlewise --bin idlewise-demo
	$(or $(CARGO_TARGET_DIR),target)/debug/idlewise-demo

# docs/experiments.md and experiments/report.html, with a real trace too if the folder IDLEWISE_TRACES has it;
# OPTIONS="--seconds 20" for longer runs
experiments: setup-disk
	$(RELEASE)
	$(BUILT)/idlewise-experiments $(OPTIONS)

promise: setup-disk
	$(RELEASE)
	$(BUILT)/idlewise-promise $(OPTIONS)

commands:
	@./testbed/setup.sh "$(BUILD_PACKAGES) $(COMMAND_PACKAGES)" "$(RUST_PACKAGES)" "$(RUST)"
	$(RELEASE)
	$(BUILT)/idlewise-commands $(OPTIONS)

# docs/commands-in-machine.md, where the kernel says for whom it writes later; OPTIONS="--fs xfs --resume" for more
commands-in-machine:
	@./testbed/setup.sh "$(BUILD_PACKAGES) $(COMMAND_PACKAGES) $(TEST_PACKAGES)" "$(RUST_PACKAGES)" "$(RUST)"
	$(RELEASE)
	./testbed/vm/vm.sh --fetch
	./testbed/vm/commands.sh $(BUILT) $(OPTIONS)

acceleration: setup-disk
	$(RELEASE)
	$(BUILT)/idlewise-acceleration $(TRACE) $(OPTIONS)

bench-key-value: setup-disk
	$(RELEASE)
	cargo build --release --locked $(STORE) $(STORE_TARGET)
	examples/key-value-store/bench.sh $(BUILT) $(RUNS)

# In a workspace of its own, beside the others.
test: export ALSO = $(call with_store,cargo test --locked $(STORE) $(STORE_TARGET))
test: setup
	@./tests/oracle/setup.sh
	@./python/setup.sh
	@./tests/prometheus/fetch.sh || echo "the tests with Prometheus will be skipped"
	@./testbed/vm/vm.sh --fetch || echo "the tests in the emulated machine will be skipped"
	@echo "Building the tests: about 3 minutes on 2 cores from nothing. Running them takes about 7 more."
	cargo build --locked --workspace --lib --bins --tests --examples
	./tests/run.sh

fuzz: setup
	./fuzz/run.sh $(or $(SECONDS),60)

lint: setup
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --workspace --all-targets --no-default-features -- -D warnings
	cargo fmt --check $(STORE)
	@$(call with_store,cargo clippy --locked --all-targets $(STORE) $(STORE_TARGET) -- -D warnings)
	# The library as an embedder has it.
	cargo clippy --locked -p idlewise --no-default-features --lib --tests --target-dir target/thin -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

build: setup-build
	$(RELEASE) --bin idlewise

# `sudo make install` after `make build` takes what is built: root need not have a toolchain, nor be given one.
install: $(if $(and $(SUDO_USER),$(wildcard $(BUILT)/idlewise)),,build)
	$(SUDO) install -D -s -m 755 $(BUILT)/idlewise $(DESTDIR)$(PREFIX)/bin/idlewise
	$(BUILT)/idlewise generate-files $(BUILT)/made $$(date +%F)
	$(SUDO) install -d $(SHARE)/man/man1
	$(SUDO) install -m 644 $(BUILT)/made/*.1 $(SHARE)/man/man1
	$(SUDO) install -D -m 644 $(BUILT)/made/idlewise.bash $(SHARE)/bash-completion/completions/idlewise
	$(SUDO) install -D -m 644 $(BUILT)/made/_idlewise $(SHARE)/zsh/site-functions/_idlewise
	$(SUDO) install -D -m 644 $(BUILT)/made/idlewise.fish $(SHARE)/fish/vendor_completions.d/idlewise.fish

# The documents as a site, in target/book; its builder is compiled once, into target/tools.
docs: setup-build
	@[ -x target/tools/bin/mdbook ] || { echo "Building mdbook: about 3 minutes on 2 cores."; \
		cargo install --locked --root target/tools --no-default-features --features search mdbook@$(MDBOOK); }
	target/tools/bin/mdbook build
	cargo test --locked --workspace --test docs

# What builds it comes from the package index, into target/tools.
wheel: setup-build
	./python/wheel.sh

# cargo-deny is compiled once, into target/tools. It looks up known faults on the network.
deny: setup-build
	@[ -x target/tools/bin/cargo-deny ] || { echo "Building cargo-deny: about 8 minutes on 2 cores."; \
		cargo install --locked --root target/tools cargo-deny@$(DENY); }
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo deny --locked check

publishable: setup-build
	cargo publish --locked --workspace --dry-run --no-verify

dist:
	$(if $(filter aarch64,$(ARCH)),dpkg --print-foreign-architectures | grep -q arm64 || $(SUDO) dpkg --add-architecture arm64)
	@./testbed/setup.sh "$(BUILD_PACKAGES) $(DIST_PACKAGES) $(DIST_PACKAGES_$(ARCH))" "$(RUST_PACKAGES)" "$(RUST)"
	@echo "Building the packages: about 5 minutes on 2 cores from nothing."
	packaging/build.sh $(ARCH)

test-packages: dist
	packaging/test.sh $(SUITE)

# docs/results.md, from the traces in the folder IDLEWISE_TRACES
tables: setup
	IDLEWISE_WRITE_DOCS=1 cargo bench --locked --quiet -p idlewise --bench tables

# In the emulated machine; it builds what the tests build.
month: setup
	@./testbed/vm/vm.sh --fetch
	cargo build --locked --workspace --bins
	VM_MEMORY=3072 ./testbed/vm/vm.sh -b $(or $(CARGO_TARGET_DIR),target)/debug/idlewise -l sd_mod -l sg -m scsi_debug -t 7200 \
		tests/machine/month.sh $(DAYS) $(DISKS)

# In the emulated machine as well: arrays of md and device-mapper beside writers, for so many minutes.
writing: setup
	@./testbed/vm/vm.sh --fetch
	cargo build --locked --workspace --bins
	VM_MEMORY=640 ./testbed/vm/vm.sh -b $(or $(CARGO_TARGET_DIR),target)/debug/idlewise -b dmsetup -b fio $(addprefix -m ,raid1 raid10 raid456 loop dm-mod dm-raid) \
		-f tests/machine/steps.sh:/lib/steps.sh -f tests/machine/layouts.sh:/lib/layouts.sh -t 7200 tests/machine/writing.sh $(MINUTES)

# docs/deadlines.md, from the same traces
deadlines: setup
	IDLEWISE_WRITE_DOCS=1 cargo bench --locked --quiet -p idlewise-service --bench deadlines

bench: setup
	cargo bench --locked --quiet -p idlewise

setup:
	@./testbed/setup.sh "$(BUILD_PACKAGES) $(TEST_PACKAGES)" "$(RUST_PACKAGES) $(LINT_PACKAGES)" "$(RUST)"

setup-disk:
	@./testbed/setup.sh "$(BUILD_PACKAGES) $(DISK_PACKAGES)" "$(RUST_PACKAGES)" "$(RUST)"

setup-build:
	@./testbed/setup.sh "$(BUILD_PACKAGES)" "$(RUST_PACKAGES)" "$(RUST)"

clean:
	cargo clean
