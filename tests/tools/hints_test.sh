#!/usr/bin/env bash
# The check of tools/lint that a comment says what makes it safe to read what users can write.
#
#   tests/tools/hints_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$root/tools/lib/log.sh"
# shellcheck source=../../tools/lib/hints.sh
. "$root/tools/lib/hints.sh"
# shellcheck source=checks.sh
. "$root/tests/tools/checks.sh"

dir=$(mktemp -d)
on_exit rm -rf "$dir"
cd "$dir"

# complaints LINE…: the lines of a source of these lines that the check names.
complaints() {
  printf '%s\n' "$@" >source.cc
  { unexplained_hints <<<source.cc || true; } | cut -d: -f2 | xargs
}

expect "an annotation" 2 "$(complaints 'int main() {' '  if (job.meta.Annotation(kQueue) == "x") return 1;')"
expect "labels, by a pointer" 1 "$(complaints 'for (const auto& [key, value] : pod->meta.labels) Use(key);')"
expect "of a template" 1 "$(complaints 'return job.template_annotations.contains(kKey);')"
expect "one that is explained" '' "$(complaints 'x = meta.labels.at(kHeld);  // hint: a policy holds it')"
expect "one below its explanation" '' "$(complaints '// hint: only told' 'Say(' '    meta.Annotation(kUser));')"
expect "one too far below" 4 "$(complaints '// hint: only told' '' '' 'Say(meta.Annotation(kUser));')"
expect "what only writes" '' "$(complaints '  pod.meta.labels = wanted;')"
printf '// hint: of this source\n' >first.cc
printf 'Use(meta.annotations);\n' >second.cc
expect "behind another source" second.cc:1 \
  "$(printf '%s\n' first.cc second.cc | { unexplained_hints || true; } | cut -d: -f1,2)"
