#!/usr/bin/env bash
# What tools/soak says to values that it cannot use, before it installs or builds anything.
#
#   tests/tools/soak_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$root/tools/lib/log.sh"
# shellcheck source=checks.sh
. "$root/tests/tools/checks.sh"

for minutes in 0 1441 two -1 ''; do
  refused "minutes '$minutes'" "--minutes '$minutes': wanted a number from 1 to 1440" \
    "$root/tools/soak" --minutes "$minutes"
done
refused "no minutes" "--minutes ''" "$root/tools/soak" --minutes
for seed in x -1 '' 1234567890123456789; do
  refused "seed '$seed'" "--seed '$seed': wanted a number of up to 18 digits" "$root/tools/soak" --seed "$seed"
done
refused "an unknown option" "unknown option '--hours'; usage: tools/soak" "$root/tools/soak" --hours 1
