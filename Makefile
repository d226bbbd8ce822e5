# make demo    find a planted scheduler regression in a real kernel, and revert it
# make check   everything that must pass before a change lands
# make check-extended   what takes too long for each change: tables made by simulation are made anew, a whole search
#                       over two machines, kernels with modules and for arm64, sessions that are killed, a guest that reboots
# make install    binary, completions, manual pages, profiles, hooks and docs below PREFIX (/usr/local), in DESTDIR; what `make`
#                 built. `make uninstall` takes them away
# make deb        a Debian package, in target/debian/
#
# The first two install what is missing (Debian as root) or say what it is.

SHELL := /bin/bash
KERNEL_TREE ?= $(CURDIR)/target/demo/linux
KERNEL_STATE ?= $(CURDIR)/target/demo/check

# A binary that is there already can be given.
BINARY ?= target/release/sched-bisect
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all demo check check-extended deps kernel-tree fmt lint doc test install uninstall deb clean

all:
	cargo build --release

demo: deps
	cargo build --release
	demo/demo.sh $(KERNEL_TREE) target/release/sched-bisect

check: deps fmt lint doc kernel-tree test

deps:
	scripts/install-deps.sh

kernel-tree: deps
	demo/make-history.sh $(KERNEL_TREE)

fmt:
	cargo fmt --check

lint:
	cargo clippy --all-targets -- -D warnings
	shellcheck -x -P hooks hooks/*.sh
	shellcheck scripts/*.sh

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
	cargo test --doc

# The kernel test leaves a kernel behind, with which the guest's own tests are run. SB_TEST_TWO_MACHINES: a missing MariaDB,
# sysbench or sshd fails the test of two machines instead of skipping it; SB_TEST_CHROMIUM: a missing Chromium that of the
# report's page, whose pictures are left in target/report.
test:
	cargo test --lib --bins
	SB_TEST_KERNEL_TREE=$(KERNEL_TREE) SB_TEST_KERNEL_STATE=$(KERNEL_STATE) cargo test --test kernel -- --nocapture
	SB_TEST_KERNEL=$$(ls -d $(KERNEL_STATE)/.kbuild/cache/*/ | head -n 1) \
		SB_TEST_TWO_MACHINES=1 SB_TEST_CHROMIUM=1 cargo test --test it

# The guest, on two cores that were busy with other things: its disk 5 min, its own test 10, doctor in it 9, the bisection in it 45, 20
# of which are kernels built from nothing.
check-extended: deps kernel-tree
	cargo test --release --lib -- --ignored
	scripts/install-deps.sh aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu
	SB_TEST_KERNEL_TREE=$(KERNEL_TREE) SB_TEST_KERNEL_STATE=$(KERNEL_STATE) \
		cargo test --test kernel -- --ignored --test-threads=1 --nocapture
	SB_TEST_TWO_MACHINES=1 cargo test --test it two_machines -- --ignored
	SB_TEST_TWO_MACHINES=1 cargo test --test it ssh_machine -- --ignored
	SB_TEST_GUEST=1 SB_TEST_KERNEL_TREE=$(KERNEL_TREE) SB_TEST_KERNEL_STATE=$(KERNEL_STATE) \
		cargo test --test it guest_ -- --ignored --nocapture --test-threads=1

# Builds only where nothing was built: who installs as root may have no compiler there.
$(BINARY):
	cargo build --release --locked

install: $(BINARY)
	scripts/install.sh install "$(BINARY)" "$(PREFIX)" "$(DESTDIR)"

uninstall:
	scripts/install.sh uninstall "$(BINARY)" "$(PREFIX)" "$(DESTDIR)"

# target/deb/ is what Cargo.toml names as assets beside the repository's own files.
deb:
	cargo deb --version >/dev/null 2>&1 || cargo install --locked cargo-deb
	cargo build --release --locked
	scripts/stage-deb.sh target/release/sched-bisect target/deb
	cargo deb --no-build --strip

clean:
	cargo clean
