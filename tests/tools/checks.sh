# shellcheck shell=bash
# What the tests of the tools say "as it should be" with. Sourced after log.sh. The first check that fails ends the test and
# shows what was seen.

# fail WHAT SEEN
fail() {
  say "FAIL  $1; seen:"
  printf '%s\n' "$2" | sed 's/^/    | /' >&2
  exit 1
}

# expect WHAT WANTED SEEN
expect() {
  [[ $3 == "$2" ]] || fail "$1: wanted '$2'" "$3"
  say "ok    $1"
}

# eventually SECONDS WHAT WANTED COMMAND…: until COMMAND prints WANTED.
eventually() {
  local deadline=$(($(now_ms) + $1 * 1000)) what=$2 wanted=$3 seen
  shift 3
  until seen=$("$@" 2>&1) && [[ $seen == "$wanted" ]]; do
    (($(now_ms) < deadline)) || fail "$what: wanted '$wanted'" "$seen"
    nap 0.1
  done
  say "ok    $what"
}

# refused WHAT PATTERN COMMAND…: COMMAND fails and says PATTERN.
refused() {
  local what=$1 pattern=$2 output
  shift 2
  ! output=$("$@" 2>&1) || fail "$what: wanted a failure" "$output"
  [[ $output == *$pattern* ]] || fail "$what: wanted a message with '$pattern'" "$output"
  say "ok    $what"
}
