#!/usr/bin/env bash
# scripts/gpu_share.sh BUILD: records go from one database to another and are measured again on this GPU; poisoned ones
# are refused, and change nothing. 77: there is no GPU.
set -euo pipefail
autotune=$(realpath "$1")/bin/autotune
[ -x "$autotune" ] || { echo "error: there is no $autotune: make gpu-build makes it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export AUTOTUNE_DB=$work/none/tune.db AUTOTUNE_SYSTEM_DB=$work/none/system.db
problem=rows=300,cols=1000,dtype=f32

fail() { echo "error: $*" >&2; exit 1; }
expect() {  # exit code, pattern of stdout, command
  local code=0 want=$1 pattern=$2
  shift 2
  echo "\$ autotune $*"
  "$autotune" "$@" >out 2>err </dev/null || code=$?
  cat out err
  [ "$code" = "$want" ] || fail "exit code $code, not $want: autotune $*"
  [ -z "$pattern" ] || grep -qE -- "$pattern" out || fail "'$pattern' is not in its output: autotune $*"
}

"$autotune" doctor >doctor 2>&1 || true
grep -qE '^(ok|warn) +gpu 0' doctor || { echo "skipped: there is no GPU here"; exit 77; }

expect 0 . tune softmax $problem --budget 10 --effort quick --db from/tune.db
expect 0 '' db export softmax -o lines.jsonl --db from/tune.db
expect 0 '' db export softmax -o rows.db --db from/tune.db
[ -s lines.jsonl ] || fail "nothing was exported"

# Both forms give the same, ranked as measured elsewhere, and what is checked and timed here as measured here.
for form in lines.jsonl rows.db; do
  expect 0 ': [1-9][0-9]* new, 0 better, 0 not better' db import $form --db "$form.to/tune.db"
  expect 0 '"verified":"elsewhere"' query softmax --json --db "$form.to/tune.db"
  expect 0 '^answer: exact' why softmax $problem --db "$form.to/tune.db"
  expect 0 '^[1-9][0-9]* records? checked, 0 failed, [1-9][0-9]* now measured here' verify softmax --imported --db "$form.to/tune.db"
  expect 0 '"strategy":"verify"' db export softmax --db "$form.to/tune.db"
  expect 0 '^0 records checked' verify softmax --imported --db "$form.to/tune.db"
done
"$autotune" db export softmax --db lines.jsonl.to/tune.db | grep -q '"origin":"import"' && fail "an imported record stands"

# Poison: a parameter and an op that nobody declares, a cut row, a cut file, a file that is none.
sed 's/"config":\[\["/&X/' lines.jsonl >variant.jsonl
sed 's/"softmax"/"s0ftmax"/' lines.jsonl >op.jsonl
cut -c1-200 lines.jsonl >short.jsonl
for poison in variant op; do
  cmp -s $poison.jsonl lines.jsonl && fail "$poison.jsonl is not poisoned"
  expect 2 '^refused: ' db import $poison.jsonl --db poisoned/tune.db
done
head -c 5000 rows.db >half.db
head -c 5000 /dev/urandom >noise.db
for poison in short.jsonl half.db noise.db; do
  code=0
  "$autotune" db import $poison --db poisoned/tune.db >out 2>err || code=$?
  cat out err
  [ $code = 1 ] || [ $code = 2 ] || fail "exit code $code for $poison"
  grep -qE '^(error|refused): ' out err || fail "nothing is said of $poison"
done
[ -z "$("$autotune" db export --db poisoned/tune.db 2>/dev/null)" ] || fail "poison was taken in"
echo "shared and measured again"
