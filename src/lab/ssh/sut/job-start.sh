# Starts the script on standard input, of $3 bytes, unless it was started already: the answer to that may have been lost.
# $2 marks all its processes; after $4 seconds it is ended; $5 is a job whose files nobody needs any more, or "-"; $6 is how long to
# wait for its end; the rest is its environment, NAME=VALUE each. Status 3: the script did not arrive whole.
mark=$2 size=$3 within=$4 wait=$6
[ "$5" = - ] || rm -rf "${base:?}/$5"
shift 6
if [ ! -d "$dir/begun" ]; then
    mkdir -p "$dir" || exit 1
    cat >"$dir/script" || exit 1
    [ "$(wc -c <"$dir/script" | tr -d ' ')" = "$size" ] || exit 3
    rm -f "$dir/alive"
    mkfifo "$dir/alive" || exit 1
    # Who waits reads the pipe: it ends with the runner, and nobody needs to look in between.
    mkdir "$dir/begun" 2>/dev/null && SB_CALL=$mark setsid sh -c '
        dir=$1 within=$2
        shift 2
        exec 9<>"$dir/alive"
        echo $$ >"$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
        cd /
        timeout -k 5 "$within" env "$@" sh "$dir/script" </dev/null >"$dir/out" 2>"$dir/err" 9>&-
        echo $? >"$dir/status.new" && mv "$dir/status.new" "$dir/status"
    ' sh "$dir" "$within" "$@" </dev/null >/dev/null 2>&1 &
fi
for try in 1 2 3 4 5 6 7 8 9 10; do
    [ -e "$dir/pid" ] && break
    # Not every sleep knows parts of a second.
    sleep 0.1 2>/dev/null || sleep 1
done
[ -e "$dir/pid" ] || exit 1
