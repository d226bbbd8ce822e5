# shellcheck shell=sh
# Stands before the scripts for systemd-boot.
if ! have bootctl; then die 6 "no bootctl"; fi
# -x: the partition for kernels, which is the ESP where there is no other; -p where bootctl is too old for it.
loader=$(bootctl -x 2>/dev/null || bootctl -p 2>/dev/null || true)
if [ -z "$loader" ]; then die 6 "bootctl finds no boot partition"; fi
entries=$root$loader/loader/entries
vendor=4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
# A variable of the boot loader's: four bytes of attributes, then UTF-16.
variable() {
	file=$root/sys/firmware/efi/efivars/$1-$vendor
	if [ -r "$file" ]; then tail -c +5 "$file" | tr -d '\000'; fi
}
