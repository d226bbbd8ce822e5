# shellcheck shell=sh
# $1 "reboot", or "kexec" into the loaded kernel. Asks for it and returns; services end in order.
if have systemctl; then
	systemctl --no-block "$1" >&2
elif [ "$1" = kexec ]; then
	die 6 "no systemctl: a kexec that ends services first needs it"
else
	reboot >&2
fi
