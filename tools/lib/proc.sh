# shellcheck shell=bash
# How the tools start and stop the real parts (Kafka, PostgreSQL, etcd, …). Sourced after log.sh.
#
# A part lives in a folder of its own: DIR/logs/NAME.log is what it says, DIR/logs/NAME.pid its process. Each process
# carries the folder in its environment (FLUXQUEUE_STACK=DIR), by which a pid that has since been given to
# another process is not mistaken for ours, and its name (FLUXQUEUE_PART=NAME), by which stop also finds what no pid file
# names yet or any more.

# Free ports come from below the kernel's ephemeral range, each given to one asker only: two starts at the same
# moment never get the same one.
readonly PORT_FIRST=20000 PORT_LAST=31999

proc_pid() {
  local pid
  pid=$(cat "$1/logs/$2.pid" 2>/dev/null) || return 1
  [[ -n $pid ]] || return 1
  printf '%s' "$pid"
}

# proc_is_ours PID DIR: the process runs (a zombie does not) and was started for DIR.
proc_is_ours() {
  local tries state environment
  for ((tries = 0; tries < 1000; ++tries)); do
    # Read once: at the moment of an exec the environment is empty, as that of a zombie is for good, and a moment later
    # it is not.
    environment=$(tr '\0' '\n' <"/proc/$1/environ")
    [[ $'\n'$environment$'\n' != *$'\n'"FLUXQUEUE_STACK=$2"$'\n'* ]] || return 0
    [[ -z $environment ]] || return 1
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status") || return 1
    [[ -n $state && $state != [ZX]* ]] || return 1
    nap 0.01
  done
  return 1
} 2>/dev/null

proc_running() {
  local pid
  pid=$(proc_pid "$1" "$2") && proc_is_ours "$pid" "$1"
}

# proc_start DIR NAME COMMAND…: starts a daemon that outlives this shell and holds none of its files (an inherited
# lock or pipe would keep a caller waiting for as long as the daemon lives).
proc_start() {
  local dir=$1 name=$2
  shift 2
  mkdir -p "$dir/logs"
  rm -f "$dir/logs/$name.pid"
  # shellcheck disable=SC2016
  FLUXQUEUE_STACK=$dir FLUXQUEUE_PART=$name setsid --fork bash -c '
    for fd in /proc/$$/fd/*; do
      fd=${fd##*/}
      ((fd <= 2)) || eval "exec $fd>&-"
    done
    echo $$ >"$0.tmp" && mv "$0.tmp" "$0"
    exec "$@"' "$dir/logs/$name.pid" "$@" >>"$dir/logs/$name.log" 2>&1 </dev/null
  local deadline=$(($(now_ms) + 10000))
  until [[ -s $dir/logs/$name.pid ]]; do
    (($(now_ms) < deadline)) || { say "waited 10 s for $name to be started in vain" && return 1; }
    nap 0.005
  done
}

# proc_wait_ready DIR NAME SECONDS WHAT COMMAND…: waits for COMMAND; fails at once when the process has ended. Either
# failure shows the end of the process' log.
proc_wait_ready() {
  local dir=$1 name=$2 seconds=$3 what=$4 deadline
  shift 4
  deadline=$(($(now_ms) + seconds * 1000))
  until "$@" >/dev/null 2>&1; do
    if ! proc_running "$dir" "$name"; then
      say "$name has ended while we waited for $what; the end of $dir/logs/$name.log:"
    elif (($(now_ms) > deadline)); then
      say "waited $seconds s for $what in vain; the end of $dir/logs/$name.log:"
    else
      nap 0.05
      continue
    fi
    show_tail "$dir/logs/$name.log"
    return 1
  done
}

# proc_signal DIR NAME SIGNAL: for parts that may stop side by side, before proc_stop waits for each.
proc_signal() {
  local pid
  if pid=$(proc_pid "$1" "$2") && proc_is_ours "$pid" "$1"; then
    kill "-$3" "$pid" 2>/dev/null || true
  fi
}

# proc_stop DIR NAME [SIGNAL [SECONDS]]: asks with SIGNAL (TERM), after SECONDS (10) kills; waits until it has gone. One
# whose start was interrupted before its pid file was written is killed.
proc_stop() {
  local dir=$1 name=$2 signal=${3:-TERM} seconds=${4:-10} pid deadline
  if pid=$(proc_pid "$dir" "$name") && [[ $pid != "$$" ]] && proc_is_ours "$pid" "$dir"; then
    kill "-$signal" "$pid" 2>/dev/null || true
    deadline=$(($(now_ms) + seconds * 1000))
    while proc_is_ours "$pid" "$dir"; do
      if (($(now_ms) > deadline)); then
        warn "$name (pid $pid) did not stop within $seconds s and is killed"
        kill -KILL "$pid" 2>/dev/null || true
        deadline=$(($(now_ms) + 3600000))
      fi
      nap 0.02
    done
  fi
  for pid in $(proc_others "$dir"); do
    if grep -qzxsF "FLUXQUEUE_PART=$name" "/proc/$pid/environ"; then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done
  rm -f "$dir/logs/$name.pid"
}

# proc_others DIR [SESSION]: every process that was started for DIR, whether a pid file knows it or not, save those of our
# own session (a stop that the watchdog runs was itself started for DIR) and of SESSION.
proc_others() {
  local environ pid session self
  self=$(ps -o sid= -p $$)
  # grep reports processes that end while it looks as errors.
  { grep -lzxsF "FLUXQUEUE_STACK=$1" /proc/[0-9]*/environ || true; } | while read -r environ; do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    session=$(ps -o sid= -p "$pid") || continue
    [[ $session == "$self" || ${session// /} == "${2:-}" ]] || printf '%s\n' "$pid"
  done
}

# proc_sweep DIR [SESSION]: kills what is left of DIR. The last act of every stop, and the first of every start, which
# spares the session of the watchdog.
proc_sweep() {
  local pid pids deadline=$(($(now_ms) + 10000))
  while pids=$(proc_others "$@"); [[ -n $pids ]] && (($(now_ms) < deadline)); do
    for pid in $pids; do
      kill -KILL "$pid" 2>/dev/null || true
    done
    nap 0.02
  done
}

# proc_recover DIR: what a start does first about a part that was killed and left children or pid files behind.
proc_recover() {
  proc_sweep "$1" "$(proc_pid "$1" watchdog || true)"
}

# proc_watch_parent DIR PID STOP…: a watchdog that runs STOP when process PID has ended, so that a test that crashes
# leaves nothing behind.
proc_watch_parent() {
  local dir=$1 parent=$2
  shift 2
  [[ -d /proc/$parent ]] || die "--parent $parent: there is no such process"
  proc_stop "$dir" watchdog
  # shellcheck disable=SC2016
  proc_start "$dir" watchdog bash -c \
    'tail --pid="$1" -s 0.3 -f /dev/null; shift; exec "$@"' watchdog "$parent" "$@"
}

# True when something listens on port $1 of any address (the kernel's own table: no tool is needed for it).
port_used() {
  local hex
  printf -v hex ':%04X' "$1"
  awk -v port="$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

port_unused() {
  ! port_used "$1"
}

port_open() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# A port that nobody listens on and that no other start was given of late.
port_free() {
  local counter=${TMPDIR:-/tmp}/fluxqueue-ports.$UID port tries=0 lock
  exec {lock}>>"$counter"
  flock "$lock"
  port=$(cat "$counter")
  port=${port:-$((PORT_FIRST + $$ % (PORT_LAST - PORT_FIRST)))}
  while :; do
    port=$((port >= PORT_LAST || port < PORT_FIRST ? PORT_FIRST : port + 1))
    port_used "$port" || break
    tries=$((tries + 1))
    ((tries < PORT_LAST - PORT_FIRST)) || die "no free port between $PORT_FIRST and $PORT_LAST"
  done
  printf '%s\n' "$port" >"$counter"
  exec {lock}>&-
  printf '%s' "$port"
}

# port_want PORT WHAT: ends the script with what to do when PORT is taken. A process that was killed a moment ago is
# given the time to let go of it.
port_want() {
  if ! [[ $1 =~ ^[0-9]{1,5}$ ]] || (($1 < 1 || $1 > 65535)); then
    die "port '$1' for $2: wanted a number from 1 to 65535"
  fi
  wait_until 3 "port $1 to become free" port_unused "$1" || die "port $1, wanted for $2, is in use by another program: give another with --port," \
    "or stop that program ('ss -ltnp sport = :$1' names it)"
}

# The folder $1, made, as an absolute path without symbolic links.
stack_dir() {
  mkdir -p "$1"
  (cd "$1" && pwd -P)
}

# stop_begin DIR: what every stop starts with; sets dir. A folder that somebody has deleted may still have processes.
stop_begin() {
  if [[ ! -d $1 ]]; then
    proc_sweep "$(realpath -m "$1")"
    exit 0
  fi
  dir=$(stack_dir "$1")
  stack_lock "$dir"
  proc_stop "$dir" watchdog
}

# stack_lock DIR: one start or stop at a time for a folder.
stack_lock() {
  mkdir -p "$1/logs"
  exec {STACK_LOCK}>"$1/logs/lock"
  flock -w 120 "$STACK_LOCK" || die "another start or stop of $1 has run for two minutes: see its logs in $1/logs"
}

