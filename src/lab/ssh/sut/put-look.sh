# What of the file $1 is there: "whole SIZE SHA256" of itself, "part SIZE SHA256" of what an earlier transfer left.
for kind in whole part; do
    file=$1
    [ "$kind" = whole ] || file=$1.sb-part
    [ -f "$file" ] && [ ! -L "$file" ] || continue
    sum=$(sha256sum <"$file") && printf '%s %s %s\n' "$kind" "$(wc -c <"$file" | tr -d ' ')" "${sum%% *}"
done
exit 0
