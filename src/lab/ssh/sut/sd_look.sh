# shellcheck shell=sh
# Tells what systemd-boot would do. No arguments.
say boot "$loader"
say once "$(variable LoaderEntryOneShot)"
say set_default "$(variable LoaderEntryDefault)"
esp=$(bootctl -p 2>/dev/null || true)
for file in "$root$esp/loader/loader.conf" "$root$loader/loader/loader.conf"; do
	if [ -f "$file" ]; then
		say configured "$(sed -n 's/^default[[:space:]][[:space:]]*//p' "$file" | tail -n 1)"
		break
	fi
done
for entry in "$entries"/*.conf; do
	if [ -f "$entry" ]; then
		say entry "${entry##*/}"
		sed -n 's/^\(title\|linux\|version\|sort-key\)[[:space:]][[:space:]]*/entry.\1=/p' "$entry"
	fi
done
# Not in old versions.
if json=$(bootctl list --json=short 2>/dev/null); then say json "$(printf '%s' "$json" | tr '\n' ' ')"; fi
