# shellcheck shell=sh
# $1 directory of images. Tells what GRUB would do: its environment, its menu, how it finds the images.
boot=$1
say directory "${grub#"$root"}"
environment | sed 's/^/env./'
# The lines a menu is made of, and what chooses from it.
grep -E '^[[:space:]]*(menuentry|submenu|linux|linuxefi|linux16|\}|(set[[:space:]]+)?default=|blscfg|source .*custom|.*next_entry)' \
	"$grub/grub.cfg" | sed 's/^/cfg=/' || true
for entry in "$root"/boot/loader/entries/*.conf; do
	if [ -f "$entry" ]; then
		entry_name=${entry##*/}
		say bls "${entry_name%.conf}"
		sed -n 's/^\(title\|linux\|version\)[[:space:]][[:space:]]*/bls.\1=/p' "$entry"
	fi
done
if path=$(first_of grub-mkrelpath grub2-mkrelpath) && [ -n "$path" ]; then
	say path "$("$path" "$root$boot" 2>/dev/null || true)"
fi
if probe=$(first_of grub-probe grub2-probe) && [ -n "$probe" ]; then
	say uuid "$("$probe" --target=fs_uuid "$root$boot" 2>/dev/null || true)"
fi
