#!/usr/bin/env bash
# tools/guards, in a checkout where a guard is a line of a file, and the test a script that reads it; and the table of guards of
# this checkout, compared with its sources and with the tests of a build.
#
#   tests/tools/guards_test.sh BUILD
#
# Run by ctest.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

build=$(realpath "${1:?usage: tests/tools/guards_test.sh BUILD}")
root=$(mktemp -d)
on_exit rm -rf "$root"

# A checkout: a door that is shut, a test that looks whether it is, and one that does not.
mkdir -p "$root/tools/lib" "$root/tests/adversary" "$root/.build/release/tests" "$root/bin"
cp "$tools/guards" "$root/tools"
cp "$tools"/lib/{log,guards}.sh "$root/tools/lib"
printf '#!/bin/sh\n' >"$root/tools/build"
printf 'walls\ndoor shut\nwindow shut\n' >"$root/house"
printf '/.build/\n' >"$root/.gitignore"
printf 'TEST(HouseTest, TheDoorIsShut) {\nTEST_F(HouseTest, HasWalls) {\n' >"$root/tests/adversary/house_test.cc"
cat >"$root/tests/house" <<'END'
#!/usr/bin/env bash
[[ ${1:-} != --gtest_list_tests ]] || { printf 'HouseTest.\n  TheDoorIsShut\n  HasWalls\n' && exit 0; }
case $GTEST_FILTER in
  *TheDoorIsShut*)
    grep -q 'door shut' house || { printf '7: house_test.cc:3: Failure\n7: the door is open\n' && exit 1; } ;;
esac
END
# ctest, of a build folder without CMake.
cat >"$root/bin/ctest" <<'END'
#!/usr/bin/env bash
tree=${2%/.build/release}
if [[ $* == *--show-only* ]]; then
  printf '{"tests": [{"name": "unit.house", "command": ["%s/.build/release/tests/house_test"]}]}\n' "$tree"
else
  cd "$tree" && tests/house
fi
END
chmod +x "$root/tools/build" "$root/tests/house" "$root/bin/ctest"
cp "$root/tests/house" "$root/.build/release/tests/house_test"
git -C "$root" init --quiet
git -C "$root" -c user.name=test -c user.email=test@localhost commit --quiet --allow-empty --message test
"$tools/guards" --check "$build" >"$root/said" 2>&1 || fail "the table of this checkout" "$(<"$root/said")"
say "ok    the table of this checkout"

export PATH=$root/bin:$PATH

# table LINE…: the table of that checkout.
table() { printf '%s\n' "$@" >"$root/tests/adversary/guards.txt"; }
printf 'door   yes   unit.house HouseTest.TheDoorIsShut\n' >"$root/tests/adversary/guards-shown.txt"
door=('[door]' 'of a thief: to come in' 'test unit.house HouseTest.TheDoorIsShut' 'says the door is open' 'in house'
  '- door shut' '+ door open')
none='none HouseTest.HasWalls: what it is made of'
guards() { "$root/tools/guards" "$@"; }

table "${door[@]}" "$none"
guards --check >"$root/said" 2>&1 || fail "a table that is right" "$(<"$root/said")"
seen=$(guards --out "$root/table" 2>"$root/said") || fail "a guard that counts" "$seen"$'\n'"$(<"$root/said")"
expect "the failure is shown" "house_test.cc:3: the door is open" "$(sed -n 's/^  *//p' "$root/table")"
expect "the sum is the last line" "1 of 1 tests fail without their guard" "$(tail -n 1 "$root/table")"
expect "here nothing is changed" "door shut" "$(grep door "$root/house")"
expect "the copy is as it was" "door shut" "$(grep door "$root/.build/guards/tree/house")"

table "${door[@]/- door shut/- window shut}" "$none"
refused "a test that passes without its guard" "0 of 1 tests" guards --only-without
table "${door[@]/says the door is open/says the roof is off}" "$none"
refused "a test that fails for another reason" "not as the table says" guards door
table "${door[@]/- door shut/- shut}" "$none"
refused "a guard that is in two places" "in 2 places of house, not in 1: shut" guards --check
refused "one cannot be taken away either" "0 of 1 tests" guards
table "${door[@]/unit.house/unit.garden}" "$none"
refused "a program that is not there" "there is no test unit.garden" guards --check
table "${door[@]/TheDoorIsShut/TheRoofIsTight}" "$none"
refused "a test that is not there" "unit.house has no test HouseTest.TheRoofIsTight" guards --check
table "${door[@]/\[door\]/[gate]}" "$none"
refused "a guard that was never taken away" "no row says that the test of gate fails without it" guards --check
table "${door[@]}"
refused "a test that has no guard" "HouseTest.HasWalls: no guard in the table names it" guards --check
table "${door[@]:0:5}"
refused "a guard without its text" "changes nothing in house" guards --check

