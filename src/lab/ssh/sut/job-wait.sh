# Waits at most $wait seconds for the job's end, then tells how it stands: "job ended STATUS", "job runs", "job died" (without having
# told its status) or "job unknown"; and "boot ID", "out BYTES", "err BYTES".
size() {
    printf '%s %s\n' "$1" "$(wc -c 2>/dev/null <"$dir/$1" | tr -d ' ')"
}
printf 'boot %s\n' "$(cat /proc/sys/kernel/random/boot_id)"
if [ ! -d "$dir/begun" ]; then
    echo "job unknown"
    exit 0
fi
[ -e "$dir/status" ] || timeout "$wait" cat "$dir/alive" >/dev/null 2>&1
stands=runs
kill -0 "$(cat "$dir/pid")" 2>/dev/null || stands=died
[ -e "$dir/status" ] && stands="ended $(cat "$dir/status")"
echo "job $stands"
size out
size err
