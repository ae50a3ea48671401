#!/usr/bin/env bash
# An archive in a store of objects: the tests of archives once more, there, and what a replay of one prints.
#
#   tests/s3/s3_test.sh BUILD
#
# The server's packages come from PyPI, once, into the project's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$here/../../tools/lib/cache.sh"
# shellcheck source=../../tools/lib/python.sh
. "$here/../../tools/lib/python.sh"

readonly USAGE='usage: tests/s3/s3_test.sh BUILD'
build=${1:?$USAGE}
if [[ -z ${FLUXQUEUE_TEST_ARCHIVE:-} ]]; then
  python=$(python_home s3 "$here/requirements.txt")/bin/python
  exec "$python" "$here/serve.py" "$0" "$build"
fi

"$build/tests/cli_test" --gtest_brief=1 --gtest_filter='ArchiveStoreTest.*:EventArchiveTest.*:ArchiveSnapshotsTest.*'

# expect TEXT COMMAND…: its output, and errors, have the text.
expect() {
  local text=$1 said
  shift
  said=$("$@" 2>&1) || true
  grep -qF -- "$text" <<<"$said" || die "wanted '$text' of: $*"$'\n'"$said"
  printf 'ok    %s\n' "$text"
}
replay() { "$build/bin/fluxqueue" replay --file "$@"; }
archive=$FLUXQUEUE_TEST_ARCHIVE/ArchiveSnapshotsTest.EachDayHasOneHoweverOftenTheArchiveIsAddedTo/again
expect 'identical' replay "$archive"
expect 'there is no file of' replay "$FLUXQUEUE_TEST_ARCHIVE/nothing"
AWS_SECRET_ACCESS_KEY=wrong expect 'the store answers 403 SignatureDoesNotMatch' replay "$archive"
AWS_ENDPOINT_URL='' expect 'set AWS_ENDPOINT_URL' replay "$archive"
expect 's3://nowhere: the store answers 404 NoSuchBucket' replay s3://nowhere
