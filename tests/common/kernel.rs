//! A tree that answers `make` as a kernel's does, in a few files: `tinyconfig`, `olddefconfig`, `bzImage` and `Image`,
//! `modules` and `modules_install`, an output directory, LOCALVERSION and its `+`, ARCH and CROSS_COMPILE, objects that are
//! compiled only when their source changed.

use super::repo::Repo;
use sched_bisect::model::CommitId;
use sched_bisect::session::Kbuild;

const MAKEFILE: &str = r#"
CC := $(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,cc)
O := $(CURDIR)
src := $(CURDIR)
objects := $(O)/fair.o $(O)/core.o

.DELETE_ON_ERROR:
tinyconfig:
	@mkdir -p $(O) && echo '# tiny' > $(O)/.config && sh $(src)/scripts/conf.sh $(src)/Kconfig $(O)/.config
olddefconfig:
	@sh $(src)/scripts/conf.sh $(src)/Kconfig $(O)/.config
bzImage: $(O)/vmlinux
	@mkdir -p $(O)/arch/x86/boot && cat $(O)/vmlinux $(O)/.config > $(O)/arch/x86/boot/bzImage
Image: $(O)/vmlinux
	@mkdir -p $(O)/arch/$(ARCH)/boot && cat $(O)/vmlinux $(O)/.config > $(O)/arch/$(ARCH)/boot/Image
modules: $(O)/vmlinux
	@grep -q '^CONFIG_MODULES=y' $(O)/.config || { echo 'The present kernel configuration has modules disabled.' >&2; exit 1; }
	@mkdir -p $(O)/kernel/sched && cp $(O)/fair.o $(O)/kernel/sched/fair.ko
modules_install:
	@sh $(src)/scripts/install.sh $(src) $(O) "$(INSTALL_MOD_PATH)" "$(INSTALL_MOD_STRIP)"
$(O)/vmlinux: $(objects) $(O)/include/config/kernel.release
	@echo '  LD      vmlinux'
	@$(CC) -shared -nostdlib -Wl,--build-id=sha1 -o $@ $(objects)
	@nm $@ > $(O)/System.map
$(O)/%.o: $(src)/kernel/sched/%.c
	@echo '  CC      kernel/sched/$*.o'
	@$(CC) -c -o $@ $<
$(O)/include/config/kernel.release: FORCE
	@env | sed 's/^/env: /'
	@mkdir -p $(dir $@)
	@plus=$$(grep -q '^CONFIG_LOCALVERSION_AUTO=y' $(O)/.config && echo +); echo "6.15.0$(LOCALVERSION)$$plus" > $@
FORCE:
"#;

/// Installs the modules as the kernel's `modules_install` does, then has `depmod` of the PATH index them; what a commit has
/// in `also-install` is done besides.
const INSTALL: &str = r#"
set -eu
release=$(cat "$2/include/config/kernel.release")
dir=$3/lib/modules/$release
mkdir -p "$dir/kernel/sched"
ln -s "$2" "$dir/build"
ln -s "$1" "$dir/source"
cp "$2/kernel/sched/fair.ko" "$dir/kernel/sched/"
[ "$4" != 1 ] || strip --strip-debug "$dir/kernel/sched/fair.ko"
echo kernel/sched/fair.ko > "$dir/modules.order"
echo > "$dir/modules.builtin"
if [ -e "$1/also-install" ]; then
	. "$1/also-install"
fi
depmod -ae -F "$2/System.map" -b "$3" "$release" || echo "Warning: 'make modules_install' requires depmod." >&2
"#;

/// Gives every known symbol the last value that the configuration has for it, or its default.
const CONF: &str = r##"
while read -r name default; do
	value=$(sed -n -e "s/^CONFIG_$name=//p" -e "s/^# CONFIG_$name is not set\$/n/p" "$2" | tail -n 1)
	value=${value:-$default}
	if [ "$value" = n ]; then echo "# CONFIG_$name is not set"; else echo "CONFIG_$name=$value"; fi
done < "$1" > "$2.new" && mv "$2.new" "$2"
"##;

/// The symbols of a commit that says nothing else, with their defaults.
pub const KCONFIG: &str = "HZ 250\nLOCALVERSION_AUTO y\nSMP n\n";

/// Commits a whole tree as the first commit.
pub fn first_commit(repo: &mut Repo, kconfig: &str) -> CommitId {
    let files = [
        ("Makefile", Some(MAKEFILE)),
        ("scripts/conf.sh", Some(CONF)),
        ("scripts/install.sh", Some(INSTALL)),
        ("Kconfig", Some(kconfig)),
        ("kernel/sched/fair.c", Some("int fair = 1;\n")),
        ("kernel/sched/core.c", Some("int core = 1;\n")),
        (".gitignore", Some("*.o\n.*\n!.gitignore\n")),
    ];
    repo.commit("c0", &[], &files)
}

/// How it is built.
pub fn spec() -> Kbuild {
    Kbuild {
        base: "tinyconfig".to_owned(),
        config: "CONFIG_SMP=y\n".to_owned(),
        required: vec!["CONFIG_HZ=250".to_owned()],
        targets: vec!["bzImage".to_owned()],
        image: "arch/x86/boot/bzImage".to_owned(),
        make_args: Vec::new(),
        arch: String::new(),
        cross_compile: String::new(),
        modules: false,
        jobs: 2,
        host: None,
        fixups: Vec::new(),
    }
}
