# shellcheck shell=bash
# shellcheck disable=SC2034
# The table of guards (tests/adversary/guards.txt), and what is asked of it without running anything. Sourced after log.sh,
# in the root of the checkout.
#
#   read_guards FILE          fills GUARDS, GUARD_*, EDIT_* and UNGUARDED
#   select_guards [NAME…]     CHOSEN: those whose names match; default: all
#   edits_of NAME             numbers of the changes that take it away
#   without_guard FILE EDIT   prints FILE after that change; 1 where it does not apply

GUARDS=() CHOSEN=()
declare -A GUARD_OF=() GUARD_TEST=() GUARD_FILTER=() GUARD_SAYS=()
# Changes of all guards: whose, in which file, in how many places, and the lines before and after.
EDIT_GUARD=() EDIT_FILE=() EDIT_PLACES=() EDIT_OLD=() EDIT_NEW=()
# Tests that are about no guard of their own, with the reason.
declare -A UNGUARDED=()

read_guards() {
  local line name='' number=0 word
  while IFS= read -r line; do
    number=$((number + 1)) word=${line%% *}
    case $line in
      '' | '#'*) ;;
      '['*']')
        name=${line:1:-1}
        [[ -z ${GUARD_OF[$name]+is} ]] || die "$1:$number: there is a guard $name already"
        GUARDS+=("$name")
        GUARD_OF[$name]='' GUARD_TEST[$name]='' GUARD_FILTER[$name]='' GUARD_SAYS[$name]=''
        ;;
      'none '*)
        read -r word name line <<<"$line"
        UNGUARDED[${name%:}]=$line name=''
        ;;
      *)
        [[ -n $name ]] || die "$1:$number: '$word' stands before the first [guard]"
        read_guard_line "$name" "$line" || die "$1:$number: wanted of, test, says, in, - or +, not '$word'"
        ;;
    esac
  done <"$1"
  complete_guards "$1"
}

read_guard_line() {
  local name=$1 line=$2 word file places
  case $line in
    'of '*) GUARD_OF[$name]=${line#of } ;;
    'test '*) read -r word "GUARD_TEST[$name]" "GUARD_FILTER[$name]" <<<"$line" ;;
    'says '*) GUARD_SAYS[$name]=${line#says } ;;
    'in '*)
      read -r word file places <<<"$line"
      EDIT_GUARD+=("$name") EDIT_FILE+=("$file") EDIT_PLACES+=("${places:-1}") EDIT_OLD+=('') EDIT_NEW+=('')
      ;;
    '- '* | '-') EDIT_OLD[-1]+=$'\n'${line:2} ;;
    '+ '* | '+') EDIT_NEW[-1]+=$'\n'${line:2} ;;
    *) return 1 ;;
  esac
}

complete_guards() {
  local name i
  for name in "${GUARDS[@]}"; do
    [[ -n ${GUARD_OF[$name]} && -n ${GUARD_TEST[$name]} && -n ${GUARD_FILTER[$name]} && -n ${GUARD_SAYS[$name]} ]] ||
      die "$1: [$name] lacks one of: of, test (with its filter), says"
    [[ -n $(edits_of "$name") ]] || die "$1: [$name] does not say in which file it is taken away"
    for i in $(edits_of "$name"); do
      EDIT_OLD[i]=${EDIT_OLD[i]#$'\n'} EDIT_NEW[i]=${EDIT_NEW[i]#$'\n'}
      [[ -n ${EDIT_OLD[i]} && ${EDIT_OLD[i]} != "${EDIT_NEW[i]}" ]] || die "$1: [$name] changes nothing in ${EDIT_FILE[i]}"
    done
  done
}

select_guards() {
  local pattern name before
  (($#)) || { CHOSEN=("${GUARDS[@]}") && return 0; }
  for pattern in "$@"; do
    before=${#CHOSEN[@]}
    for name in "${GUARDS[@]}"; do
      # shellcheck disable=SC2053
      [[ $name != $pattern ]] || CHOSEN+=("$name")
    done
    ((${#CHOSEN[@]} > before)) || die "there is no guard '$pattern': tools/guards --list"
  done
}

edits_of() {
  local i
  for i in "${!EDIT_GUARD[@]}"; do
    [[ ${EDIT_GUARD[i]} != "$1" ]] || printf '%s\n' "$i"
  done
}

without_guard() {
  local text rest places old=${EDIT_OLD[$2]}
  [[ -f $1 ]] || { say "$1 is not there" && return 1; }
  text=$(<"$1")
  rest=${text//"$old"/}
  places=$(((${#text} - ${#rest}) / ${#old}))
  if ((places != EDIT_PLACES[$2])); then
    say "[${EDIT_GUARD[$2]}] is in $places places of ${EDIT_FILE[$2]}, not in ${EDIT_PLACES[$2]}: ${old%%$'\n'*}"
    return 1
  fi
  printf '%s\n' "${text//"$old"/"${EDIT_NEW[$2]}"}"
}

# failure_that_says TEXT LOG: where a test failed, and the line that has the text. The output of "ctest --verbose", of a
# GoogleTest program or of a script of tests/tools/checks.sh. All of it is read: a pipe that closes early fails, too.
failure_that_says() {
  sed -E 's/^[0-9]+: //' "$2" | text=$1 awk '
    / Failure$|^FAIL  / { failing = 1; where = $1; sub(/.*\//, "", where); sub(/:$/, "", where) }
    /^\[ / { failing = 0 }
    !found && failing && index($0, ENVIRON["text"]) { sub(/^ */, ""); print where ": " substr($0, 1, 160); found = 1 }
    END { exit !found }'
}

# The rest says what is amiss, a line each, and nothing where all is well.

guards_found() {
  local i
  for i in "${!EDIT_GUARD[@]}"; do
    { without_guard "${EDIT_FILE[i]}" "$i" >/dev/null; } 2>&1 || true
  done
}

# tests_of PROGRAM: of GoogleTest, "Suite.Name", one a line.
tests_of() { "$1" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^ / { print suite $1 }'; }

# tests_found BUILD
tests_found() {
  local name program filter
  declare -A programs=() tests=()
  while IFS=$'\t' read -r name program; do
    programs[$name]=$program
  done < <(ctest --test-dir "$1" --show-only=json-v1 | jq -r '.tests[] | select(.command) | [.name, .command[0]] | @tsv')
  for name in "${GUARDS[@]}"; do
    program=${programs[${GUARD_TEST[$name]}]:-} filter=${GUARD_FILTER[$name]}
    if [[ ! -x $program ]]; then
      printf '[%s]: there is no test %s in %s, or it is not built\n' "$name" "${GUARD_TEST[$name]}" "$1"
    elif [[ $program == */tests/*_test ]]; then
      tests[$program]=${tests[$program]:-$(tests_of "$program")}
      [[ $'\n'${tests[$program]}$'\n' == *$'\n'"$filter"$'\n'* ]] ||
        printf '[%s]: %s has no test %s\n' "$name" "${GUARD_TEST[$name]}" "$filter"
    fi
  done
}

# guards_shown RECORD: of each guard it says that its test fails without it.
guards_shown() {
  local name
  for name in "${GUARDS[@]}"; do
    grep -qsE "^$name +yes " "$1" || printf '%s: no row says that the test of %s fails without it\n' "$1" "$name"
  done
}

# tests_have_guards FOLDER: each of its tests is named by a guard, or has a reason to be about none.
tests_have_guards() {
  local test
  grep -hoE '^TEST(_F)?\(\w+, \w+\)' "$1"/*_test.cc | sed -E 's/.*\((\w+), (\w+)\)/\1.\2/' | while read -r test; do
    [[ -n ${UNGUARDED[$test]:-} || " ${GUARD_FILTER[*]} " == *" $test "* ]] ||
      printf '%s: no guard in the table names it. Add one, or a line "none %s: REASON"\n' "$test" "$test"
  done
}
