# The file $1 is all here: of $3 bytes, with the SHA-256 $2. On disk before it has its name. Status 4: it is damaged, and gone.
part=$1.sb-part
sum=$(sha256sum <"$part") || exit 1
if [ "${sum%% *}" != "$2" ] || [ "$(wc -c <"$part" | tr -d ' ')" != "$3" ]; then
    rm -f "$part"
    echo "it arrived damaged" >&2
    exit 4
fi
# Old ones know no files as arguments.
sync "$part" 2>/dev/null || sync
mv -f "$part" "$1"
