# shellcheck shell=sh
# What kernels of ours there are, and what else an installation must know. No arguments.
say running "$(running)"
for tool in mkinitramfs dracut update-initramfs mkinitcpio; do
	if have "$tool"; then say tool "$tool"; fi
done
if [ -f "$state/default" ]; then sed 's/^/default./' "$state/default"; fi
for manifest in "$kernels"/*; do
	if [ -f "$manifest" ]; then
		say own "${manifest##*/}"
		sed 's/^/own./' "$manifest"
	fi
done
