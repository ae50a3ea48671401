#!/usr/bin/env bash
# tools/up and tools/down as a user meets them: the examples end, a second run changes nothing, what has died is started
# again, a failed run leaves nothing behind, and down takes all of it away.
#
#   tests/tools/up_test.sh BIN      BIN: the folder of the programs
#
# Needs tools/deps. Takes about two minutes.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

bin=$(realpath "${1:?usage: tests/tools/up_test.sh BIN}")
root=$(realpath "$(mktemp -d)")
export FLUXQUEUE_BIN=$bin FLUXQUEUE_STATE=$root/state
state=$FLUXQUEUE_STATE
clean_up() {
  "$tools/down" || true
  rm -rf "$root"
}
on_exit clean_up
# A test that is killed leaves nothing running either. It stops the system by the same path as tools/down.
mkdir "$root/guard"
proc_watch_parent "$root/guard" $$ "$tools/stack/stop" "$state"
on_exit proc_stop "$root/guard" watchdog

# What runs, with its command line. A process that is just ending may be seen for a moment.
processes() {
  local folder pid tries found=''
  for ((tries = 0; tries < 20; ++tries)); do
    found=''
    for folder in "$state" "$state/kafka" "$state/postgres" "$state/cluster"; do
      for pid in $(proc_others "$folder"); do
        found+="$pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"$'\n'
      done
    done
    [[ -n $found ]] || return 0
    nap 0.1
  done
  printf '%s' "$found"
}

pids() { cat "$state"/logs/*-1.pid "$state"/*/logs/*.pid; }
pid_of() { cat "$state/logs/$1.pid"; }

up() { "$tools/up" "$@"; }

examples_end() {
  local output
  output=$(up) || fail "tools/up" "$output"
  # The last table it has shown, without its times.
  expect "how the examples end" "job-array Succeeded
job-close Succeeded
job-collect Succeeded
job-compute Succeeded
job-elastic Succeeded
job-full-1 Succeeded
job-full-2 Succeeded
job-gang Succeeded
job-hello Succeeded
job-prepare Succeeded
job-ranks Succeeded
job-train Pending
pod-alone Succeeded
podgroup-solve Succeeded" "$(awk '/^NAME / { table = "" } /^(job|pod|podgroup)-/ { table = table $1 " " $3 "\n" }
    END { printf "%s", table }' <<<"$output")"
  [[ $output == *"tools/down"* ]] || fail "it says what to try next" "$output"
}

second_run_changes_nothing() {
  local before
  before=$(pids)
  up >/dev/null
  expect "a second run starts nothing anew" "$before" "$(pids)"
}

dead_parts_are_started() {
  local binder
  binder=$(pid_of binder-1)
  kill -KILL "$(pid_of queue-1)" "$(cat "$state/kafka/logs/kafka.pid")"
  up --no-examples >/dev/null
  expect "the queue runs again" yes "$(proc_running "$state" queue-1 && echo yes)"
  expect "Kafka runs again" yes "$(proc_running "$state/kafka" kafka && echo yes)"
  expect "the binder was left alone" "$binder" "$(pid_of binder-1)"
}

# As what_next and the README have it: the kubeconfig of a system means that system, not a cluster apart from it.
command_line_finds_it() {
  expect "the command line, with the system's kubeconfig" Succeeded \
    "$(KUBECONFIG=$state/kubeconfig "$bin/fluxqueue" job demo/hello -o json | jq -r .state)"
}

failed_run_leaves_nothing() {
  "$tools/down"
  expect "nothing runs after tools/down" '' "$(processes)"
  refused "a system that was stopped" "$state/fluxqueue.yaml: the system that this file names does not run" "$bin/fluxqueue" jobs
  mkdir "$root/bin"
  ln -s "$bin"/* "$root/bin"
  rm "$root/bin/fluxqueue-matcher"
  printf '#!/bin/sh\necho "this matcher is broken"\nexit 3\n' >"$root/bin/fluxqueue-matcher"
  chmod +x "$root/bin/fluxqueue-matcher"
  FLUXQUEUE_BIN=$root/bin refused "a service that does not start" "this matcher is broken" "$tools/up"
  expect "nothing runs after a failed run" '' "$(processes)"
}

bad_input_is_refused() {
  refused "an unknown option" "unknown option '--node'" "$tools/up" --node 3
  refused "a number that is none" "--nodes 'x'" "$tools/up" --nodes x
  refused "a kubeconfig that is not there" "cannot be read" "$tools/up" --kubeconfig "$root/none"
  FLUXQUEUE_STATE=$tools refused "a folder of somebody else (up)" "not ours" "$tools/up"
  FLUXQUEUE_STATE=$tools refused "a folder of somebody else (down)" "not made by tools/up" "$tools/down" --purge
}

bad_input_is_refused
examples_end
command_line_finds_it
second_run_changes_nothing
dead_parts_are_started
failed_run_leaves_nothing
"$tools/down" --purge
expect "tools/down --purge leaves no data" '' "$(ls "$state" 2>/dev/null)"
