# What the machine is and how far it has come: its account of itself, "nologin" while it lets nobody in, "state" as systemd has
# it ("none" where there is no systemd). The notes come last, as base64.
printf 'boot_id %s\n' "$(cat /proc/sys/kernel/random/boot_id)"
printf 'release %s\n' "$(cat /proc/sys/kernel/osrelease)"
printf 'cpus %s\n' "$(cat /sys/devices/system/cpu/online 2>/dev/null)"
printf 'cmdline %s\n' "$(cat /proc/cmdline)"
for nologin in /run/nologin /etc/nologin; do
    [ -e $nologin ] && printf 'nologin %s\n' $nologin
done
state=none
command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ] && state=$(systemctl is-system-running 2>/dev/null)
printf 'state %s\n' "${state:-unknown}"
echo notes
base64 </sys/kernel/notes 2>/dev/null
exit 0
