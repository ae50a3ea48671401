# shellcheck shell=bash
# How the tools talk: steps with progress and time, failures with the end of their log. Sourced, never run:
#
#   . "$(dirname "${BASH_SOURCE[0]}")/lib/log.sh"
#   steps_log_dir DIR              where the logs of the steps go (default: a folder that goes at exit)
#   step "Kafka" tools/kafka/start "$dir"          one step; its output goes to DIR/Kafka.log
#   step_async "Go build" build_go                 several, side by side …
#   step_async "C++ build" ninja -C build
#   steps_wait                                     … until all have ended
#   say "text"; warn "text"; die "what happened and what to do next"
#   wait_until 10 "the broker's port" port_open 9092       a condition with a deadline
#   on_exit rm -rf "$tmp"          runs at the end of the script, also when it fails or is interrupted
#
# A step is a command or a function; it runs in a subshell with `set -e`. One that fails shows its exit code
# and the end of its log, the steps beside it are ended, and steps_wait (and step) return 1: under `set -e` the
# script ends. Do not put them into a condition, `set -e` would then not hold inside the step.
# Everything is written to stderr, so that stdout stays for results. A terminal sees the running steps, their
# seconds and how far they say they are ("[12/340]", as ninja does) on one line; a pipe or a file gets a line every 30 s.

STEP_NAMES=() STEP_PIDS=() STEP_STARTS=() STEP_LOGS=()
ON_EXIT=()
STEPS_DIR=
STEPS_TAIL=${STEPS_TAIL:-25}

say() { printf '%s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Milliseconds of the clock, without a process.
now_ms() {
  local now=${EPOCHREALTIME/[.,]/}
  printf '%s' "${now%???}"
}

# "3.2 s" or "2 min 05 s" since the given now_ms.
elapsed() {
  local ms=$(($(now_ms) - $1))
  if ((ms < 60000)); then
    printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
  else
    printf '%d min %02d s' $((ms / 60000)) $((ms % 60000 / 1000))
  fi
}

# Sleeps for a fraction of a second. By a process: a trap that exits out of "read -t" crashes bash 5.2, now and then, before
# the script has cleaned up.
nap() { sleep "$1"; }

# wait_until SECONDS WHAT COMMAND…: polls until COMMAND succeeds. Past the deadline it says so and returns 1.
wait_until() {
  local deadline=$(($(now_ms) + $1 * 1000)) seconds=$1 what=$2
  shift 2
  until "$@"; do
    if (($(now_ms) > deadline)); then
      say "waited $seconds s for $what in vain"
      return 1
    fi
    nap 0.05
  done
}

show_tail() {
  if [[ -s $1 ]]; then
    tail -n "$STEPS_TAIL" "$1" | sed 's/^/    | /' >&2
  else
    say "    (the log is empty)"
  fi
}

on_exit() {
  local quoted
  printf -v quoted '%q ' "$@"
  ON_EXIT+=("$quoted")
}

run_on_exit() {
  local status=$? i
  trap - EXIT INT TERM HUP
  set +e
  steps_kill
  for ((i = ${#ON_EXIT[@]} - 1; i >= 0; --i)); do
    eval "${ON_EXIT[i]}"
  done
  exit "$status"
}
trap run_on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

steps_log_dir() {
  mkdir -p "$1"
  STEPS_DIR=$1
}

# Each step is a process group of its own (set -m), so that all it started can be ended with it. Its shell has traps, and
# so outlives the command that it runs: to wait for the step is to wait for what that command does at its end.
step_async() {
  local name=$1 log
  shift
  if [[ -z $STEPS_DIR ]]; then
    STEPS_DIR=$(mktemp -d)
    on_exit rm -rf "$STEPS_DIR"
  fi
  log=$STEPS_DIR/${name//[^A-Za-z0-9._+-]/-}.log
  set -m
  # shellcheck disable=SC2030,SC2031
  (
    trap - EXIT
    trap 'exit 143' INT TERM HUP
    ON_EXIT=()
    STEP_NAMES=() STEP_PIDS=()
    set +m -e
    "$@"
  ) >"$log" 2>&1 </dev/null &
  set +m
  # shellcheck disable=SC2031
  STEP_NAMES+=("$name") STEP_PIDS+=($!) STEP_STARTS+=("$(now_ms)") STEP_LOGS+=("$log")
}

step() {
  step_async "$@"
  steps_wait
}

steps_kill() {
  local pid
  for pid in "${STEP_PIDS[@]}"; do
    [[ -z $pid ]] || kill -TERM -- "-$pid" 2>/dev/null || true
  done
  for pid in "${STEP_PIDS[@]}"; do
    [[ -z $pid ]] || wait "$pid" 2>/dev/null || true
  done
  STEP_NAMES=() STEP_PIDS=() STEP_STARTS=() STEP_LOGS=()
}

# What a step said last of how far it is, with a space before it.
step_counter() {
  tail -c 4000 "$1" 2>/dev/null | grep -oE '\[[0-9]+/[0-9]+\]' | tail -n 1 | sed 's/^/ /' || true
}

steps_progress() {
  local i line='' separator='' every=30000
  [[ ! -t 2 ]] || every=1000
  (($(now_ms) - STEPS_SHOWN >= every)) || return 0
  STEPS_SHOWN=$(now_ms)
  for i in "${!STEP_PIDS[@]}"; do
    [[ -n ${STEP_PIDS[i]} ]] || continue
    line+="$separator${STEP_NAMES[i]} $((($(now_ms) - STEP_STARTS[i]) / 1000)) s$(step_counter "${STEP_LOGS[i]}")"
    separator=' · '
  done
  if [[ -t 2 ]]; then
    printf '\r\033[K  … %.110s' "$line" >&2
  else
    say "  … $line"
  fi
}

# Reports step number $1, which has ended.
step_ended() {
  local i=$1 status=0
  wait "${STEP_PIDS[i]}" || status=$?
  STEP_PIDS[i]=''
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  if ((status == 0)); then
    say "ok    ${STEP_NAMES[i]} ($(elapsed "${STEP_STARTS[i]}"))"
    return 0
  fi
  say "FAIL  ${STEP_NAMES[i]} ($(elapsed "${STEP_STARTS[i]}")): exit code $status; the end of ${STEP_LOGS[i]}:"
  show_tail "${STEP_LOGS[i]}"
  return 1
}

steps_wait() {
  local i running=1 failed=0
  STEPS_SHOWN=$(now_ms)
  while ((running)); do
    running=0
    for i in "${!STEP_PIDS[@]}"; do
      [[ -n ${STEP_PIDS[i]} ]] || continue
      if [[ $'\n'$(jobs -rp)$'\n' == *$'\n'"${STEP_PIDS[i]}"$'\n'* ]]; then
        running=1
      else
        step_ended "$i" || failed=1
      fi
    done
    ((!failed)) || break
    ((!running)) || { steps_progress && nap 0.1; }
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  steps_kill
  return "$failed"
}
