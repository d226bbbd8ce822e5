# shellcheck shell=sh
# $1 text. Keeps the default entry as it was before the first kernel of ours, for the cleanup; "" forgets it.
if [ -z "$1" ]; then
	rm -f "$state/default" "$kernels"/.[!.]* "$state/sums"/.[!.]*
	# Only what is empty.
	for dir in "$kernels" "$state/incoming" "$state/sums" "$state"; do
		rmdir "$dir" 2>/dev/null || true
	done
elif [ ! -f "$state/default" ]; then
	mkdir -p "$state"
	write_whole "$state/default" "$1"
	sync
fi
