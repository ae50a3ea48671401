#!/usr/bin/env bash
# Each test that a page names, as `unit.http`, is one.
#
#   tests/tools/test_names_test.sh BUILD
#
# BUILD: the build's folder. Run by ctest.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$root/tools/lib/log.sh"

build=${1:?usage: tests/tools/test_names_test.sh BUILD}
dir=$(mktemp -d)
on_exit rm -rf "$dir"
ctest --test-dir "$build" --show-only | sed -n 's/^ *Test *#[0-9]*: //p' | sort >"$dir/tests"
(($(wc -l <"$dir/tests") > 50)) || die "ctest lists $(wc -l <"$dir/tests") tests"

cd "$root"
find . -name '*.md' -not -path './.*' -exec \
  grep -noE '`(unit|conformance|simulation|integration|e2e|adversary|deploy)\.[a-z0-9_]+' {} + | tr -d '`' >"$dir/named"
(($(wc -l <"$dir/named") > 20)) || die "the pages name $(wc -l <"$dir/named") tests"
unknown=$(while IFS=: read -r file line name; do
  grep -qxF "$name" "$dir/tests" || printf '%s:%s: there is no test %s\n' "$file" "$line" "$name"
done <"$dir/named")
[[ -z $unknown ]] || die "$unknown"
say "ok    $(wc -l <"$dir/named") names of tests"
