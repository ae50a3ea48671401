#!/usr/bin/env bash
# What tools/chaos says to values that it cannot use, before it installs or builds anything.
#
#   tests/tools/chaos_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$root/tools/lib/log.sh"
# shellcheck source=checks.sh
. "$root/tests/tools/checks.sh"

for minutes in 1441 two -1 ''; do
  refused "minutes '$minutes'" "--minutes '$minutes': wanted a number from 0 to 1440" \
    "$root/tools/chaos" --minutes "$minutes"
done
for seed in x -1 ''; do
  refused "seed '$seed'" "--seed '$seed': wanted a number of up to 18 digits" "$root/tools/chaos" --seed "$seed"
done
refused "no fault" "--faults ''" "$root/tools/chaos" --faults ''
refused "an output" "-o 'yaml': wanted table or json" "$root/tools/chaos" -o yaml
refused "an unknown option" "unknown option '--hours'; usage: tools/chaos" "$root/tools/chaos" --hours 1
