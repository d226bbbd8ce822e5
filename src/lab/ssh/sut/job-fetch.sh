# What the job printed: the first $2 bytes on standard output, then the first $3 on standard error.
head -c "$2" "$dir/out" && head -c "$3" "$dir/err"
