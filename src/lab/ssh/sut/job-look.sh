# How long to wait for the job's end.
wait=$2
