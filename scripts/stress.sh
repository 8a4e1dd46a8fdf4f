#!/usr/bin/env bash
# scripts/stress.sh BUILD: the stress programs at full size: 200 processes write into one database, and writers are
# killed in 100 rounds. WRITERS, ROWS and ROUNDS change the sizes.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1/bin/store_writers_stress
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
echo "== ${WRITERS:-200} writers, ${ROWS:-20} rows each"
"$program" storm "${WRITERS:-200}" "${ROWS:-20}"
echo "== ${ROUNDS:-100} rounds of killing 8 writers"
"$program" kill 8 "${ROUNDS:-100}"
ctest --test-dir "$1" -L stress-long --output-on-failure --no-tests=ignore
