//! Architectures a kernel is built for: what each calls its image.

use super::document::Plain;
use super::value::{Read, filled};

/// An architecture of the kernel.
pub(super) struct Arch {
    /// Its name for make ("arm64").
    pub name: &'static str,
    /// Make target of the image that boot loaders take.
    pub target: &'static str,
    /// Where it then is, in the build directory.
    pub image: &'static str,
    /// How the names of Debian's cross compiler for it begin.
    pub cross_compile: &'static str,
}

const fn arch(
    name: &'static str,
    target: &'static str,
    image: &'static str,
    cross_compile: &'static str,
) -> Arch {
    Arch { name, target, image, cross_compile }
}

/// By the kernel's own arch/*/Makefile.
const ARCHES: [Arch; 8] = [
    arch("x86", "bzImage", "arch/x86/boot/bzImage", "x86_64-linux-gnu-"),
    arch("arm64", "Image", "arch/arm64/boot/Image", "aarch64-linux-gnu-"),
    arch("arm", "zImage", "arch/arm/boot/zImage", "arm-linux-gnueabihf-"),
    arch("riscv", "Image", "arch/riscv/boot/Image", "riscv64-linux-gnu-"),
    arch("powerpc", "vmlinux", "vmlinux", "powerpc64le-linux-gnu-"),
    arch("s390", "bzImage", "arch/s390/boot/bzImage", "s390x-linux-gnu-"),
    arch("loongarch", "vmlinux.efi", "arch/loongarch/boot/vmlinux.efi", "loongarch64-linux-gnu-"),
    arch("mips", "vmlinux", "vmlinux", "mips64el-linux-gnuabi64-"),
];

/// Other names: of make's and of what Rust calls the host.
const ALIASES: [(&str, &str); 9] = [
    ("x86_64", "x86"),
    ("i386", "x86"),
    ("aarch64", "arm64"),
    ("riscv32", "riscv"),
    ("riscv64", "riscv"),
    ("powerpc64", "powerpc"),
    ("s390x", "s390"),
    ("loongarch64", "loongarch"),
    ("mips64", "mips"),
];

/// What is known of an architecture, by any of its names.
pub(super) fn find(name: &str) -> Option<&'static Arch> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    ARCHES.iter().find(|arch| arch.name == name)
}

/// The architecture that make builds for: the profile's, or what its arguments for make say, or this host's.
pub(super) fn effective<'a>(given: &'a str, make_args: &'a [String]) -> &'a str {
    let argument = || make_args.iter().rev().find_map(|arg| arg.strip_prefix("ARCH="));
    if given.is_empty() { argument().unwrap_or(std::env::consts::ARCH) } else { given }
}

/// How the tools are to be called that build for `arch` here, where the profile (its key and its arguments for make) says
/// nothing of them and this host's own cannot: they would take every commit for broken.
pub(super) fn lacks_cross_compile(arch: &Arch, given: &str, make_args: &[String]) -> Option<&'static str> {
    let host = find(std::env::consts::ARCH).is_some_and(|host| host.name == arch.name);
    let chosen = ["CROSS_COMPILE=", "CC=", "LLVM="];
    let by_args = make_args.iter().any(|arg| chosen.iter().any(|name| arg.starts_with(name)));
    (!host && given.is_empty() && !by_args).then_some(arch.cross_compile)
}

/// A name for make's ARCH.
pub(super) fn name(value: &Plain) -> Read<String> {
    let name = filled(value)?;
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
        return Err("holds more than small letters, digits and _".to_owned());
    }
    // make takes x86_64 and i386, but knows the others by their own names alone.
    match find(&name) {
        Some(arch) if arch.name != name && arch.name != "x86" => {
            Err(format!("is no name of the kernel's for it; write {:?}", arch.name))
        }
        Some(_) | None => Ok(name),
    }
}

/// What stands before the names of the tools: "aarch64-linux-gnu-", or with a directory before it.
pub(super) fn cross_compile(value: &Plain) -> Read<String> {
    let prefix = filled(value)?;
    if prefix.contains(char::is_whitespace) {
        return Err(
            "holds a space; it is the beginning of a program's name (\"aarch64-linux-gnu-\")".to_owned()
        );
    }
    if prefix.ends_with(['-', '/']) {
        Ok(prefix)
    } else {
        Err(format!("must end in - as the names of the tools go on; write \"{prefix}-\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_has_one_image_under_all_its_names() {
        for (name, image) in [
            ("x86", "arch/x86/boot/bzImage"),
            ("x86_64", "arch/x86/boot/bzImage"),
            ("arm64", "arch/arm64/boot/Image"),
            ("aarch64", "arch/arm64/boot/Image"),
            ("powerpc64", "vmlinux"),
            ("s390x", "arch/s390/boot/bzImage"),
        ] {
            assert_eq!(find(name).map(|arch| arch.image), Some(image), "{name}");
        }
        assert!(find("vax").is_none());
        assert!(ALIASES.iter().all(|(_, name)| ARCHES.iter().any(|arch| arch.name == *name)));
    }

    #[test]
    fn the_profile_says_the_architecture_before_make_and_make_before_the_host() {
        let args = ["ARCH=arm".to_owned(), "ARCH=riscv".to_owned()];
        assert_eq!(effective("arm64", &args), "arm64");
        assert_eq!(effective("", &args), "riscv");
        assert_eq!(effective("", &[]), std::env::consts::ARCH);
    }

    #[test]
    fn names_that_make_would_not_know_are_refused() {
        let text = |text: &str| Plain::Text(text.to_owned());
        assert_eq!(name(&text("arm64")), Ok("arm64".to_owned()));
        assert_eq!(name(&text("x86_64")), Ok("x86_64".to_owned()));
        assert!(name(&text("aarch64")).is_err_and(|why| why.contains("\"arm64\"")));
        assert!(name(&text("../x86")).is_err() && name(&text("")).is_err());
        assert!(cross_compile(&text("aarch64-linux-gnu-")).is_ok());
        assert!(cross_compile(&text("/opt/cross/bin/")).is_ok());
        assert!(
            cross_compile(&text("aarch64-linux-gnu"))
                .is_err_and(|why| why.contains("\"aarch64-linux-gnu-\""))
        );
        assert!(cross_compile(&text("a b-")).is_err());
    }
}
