# Where jobs are: in memory, so that none outlives its boot; ours alone. $1 is the job's directory in it.
umask 077
base=/run/sched-bisect
[ "$(id -u)" = 0 ] || base=${XDG_RUNTIME_DIR:-$HOME/.cache}/sched-bisect
dir=$base/$1
