#!/usr/bin/env bash
# A start that is interrupted leaves nothing behind, at whatever moment that is (tools/lib/log.sh, tools/lib/proc.sh).
#
#   tests/tools/steps_test.sh
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

root=$(realpath "$(mktemp -d)")
clean_up() {
  proc_sweep "$root"
  rm -rf "$root"
}
on_exit clean_up

# A start like tools/services/start: it stops what it has started unless it has come to its end.
cat >"$root/start" <<END
set -euo pipefail
. "$tools/lib/log.sh"
. "$tools/lib/proc.sh"
abandon() { proc_stop "$root" part; : >"$root/abandoned"; }
on_exit abandon
: >"$root/begun"
proc_start "$root" part sleep 60
wait_until 60 "an end" false
END
# A shell that is slow to come up, as on a machine with much to do: the pid file is late.
mkdir "$root/slow"
printf '#!/bin/sh\nsleep 0.5\nexec %s "$@"\n' "$(command -v bash)" >"$root/slow/bash"
chmod +x "$root/slow/bash"

begin_slow() { PATH=$root/slow:$PATH "$BASH" "$root/start"; }
begin_fast() { "$BASH" "$root/start"; }

# interrupted HOW WHEN: the start has come to WHEN, a step beside it fails.
interrupted() {
  local fails=$2
  rm -f "$root/begun" "$root/abandoned"
  step_async "start" "$1"
  step_async "fails" "$fails"
  ! steps_wait 2>"$root/said" || fail "a step beside it fails" "$(<"$root/said")"
  expect "$1, $fails: it was waited for" yes "$([[ -e $root/abandoned ]] && echo yes)"
  nap 0.7
  expect "$1, $fails: nothing is left" '' "$(proc_others "$root")"
}
begun() { wait_until 10 "the start to begin" test -e "$root/begun" && false; }
started() { wait_until 10 "the part to run" proc_running "$root" part && false; }

interrupted begin_slow begun
interrupted begin_fast started
