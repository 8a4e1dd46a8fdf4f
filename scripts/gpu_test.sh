#!/usr/bin/env bash
# scripts/gpu_test.sh BUILD: the test programs that need a GPU, then compute-sanitizer on small shapes; a table comes
# last. Runs the programs themselves: neither CMake nor the place where they were built is needed. ONLY (a pattern)
# narrows, LIMIT (300) is the seconds that one line may take, TOOLS (memcheck racecheck) are compute-sanitizer's, LOGS
# is a folder that keeps what they said.
set -uo pipefail
bin=$(realpath "$1")/bin
cd "$(dirname "$0")/.." || exit 1
[ -x "$bin/autotune" ] || { echo "error: there is no $bin/autotune: make gpu-build makes it" >&2; exit 1; }
export AUTOTUNE_TEST_DATA=$PWD/tests PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs=${LOGS:-$work}
mkdir -p "$logs"
export AUTOTUNE_DB=$work/tune.db
table=() failed=0

run() {  # name, command: a line of the table; `clean` in the environment is what the log must not hold
  local name=$1 log=$logs/$1.log began=$SECONDS result=passed
  shift
  [[ $name =~ ${ONLY:-.} ]] || return 0
  timeout -k 10 "${LIMIT:-300}" "$@" </dev/null >"$log" 2>&1
  local status=$?
  [ $status = 77 ] && result="skipped: $(grep -m1 -oE 'skipped: [^;]*' "$log" | cut -c10-)"
  [ $status = 124 ] && result="not done in ${LIMIT:-300} s"
  [ $status = 0 ] || [ $status = 77 ] || [ $status = 124 ] || result="exit code $status"
  [ $status = 0 ] && [ -n "${unwanted:-}" ] && grep -qE "$unwanted" "$log" && result="errors found"
  if [ "$result" = passed ]; then
    local skipped
    skipped=$(grep -cE '^\[  SKIPPED \] [^ ]+ \(' "$log")
    [ "$skipped" = 0 ] || result="passed, $skipped skipped"
  elif [ $status != 77 ]; then
    failed=1
    echo "== $name: $result"
    tail -n "${LINES_SHOWN:-40}" "$log"
  fi
  table+=("$(printf '%-28s %5d s  %s' "$name" $((SECONDS - began)) "$result")")
}

for program in "$bin"/*_gpu_test; do run "$(basename "$program")" "$program" --gtest_brief=0; done
run selftest "$bin/autotune" selftest
[ ! -x "$bin/dispatch_softmax" ] || run dispatch_softmax "$bin/dispatch_softmax" 300 1000
library=$bin/../lib/libautotune.so.1
if [ -x "$bin/dispatch_c" ] && [ -e "$library" ]; then
  # An application keeps what it compiles, so that its second run needs no compiler; what it never ran does.
  c_example() { LD_LIBRARY_PATH=$bin/../lib:${LD_LIBRARY_PATH:-} run "$@"; }
  c_example dispatch_c "$bin/dispatch_c" 300 1000
  c_example dispatch_c_without_nvrtc env AUTOTUNE_NVRTC=/nonexistent "$bin/dispatch_c" 300 1000
  run dispatch_python python3 examples/python/dispatch.py --library "$library" 300 1000
fi

if command -v compute-sanitizer >/dev/null; then
  for tool in ${TOOLS:-memcheck racecheck}; do
    while read -r name op problem; do
      unwanted='ERROR SUMMARY: [1-9]|hazards? displayed \([1-9]' run "${tool}_$name" compute-sanitizer --tool "$tool" \
        --target-processes all --error-exitcode 9 --report-api-errors no "$bin/autotune" tune "$op" "$problem" --budget 12 \
        --effort quick --db none --workers 4 --trial-limit 60
    done <<'SHAPES'
softmax softmax rows=37,cols=1000,dtype=bf16
gemm_bf16 gemm m=130,n=72,k=70,dtype=bf16
gemm_f32 gemm m=67,n=45,k=33,dtype=f32
attention attention batch=1,q_heads=2,kv_heads=1,seq_q=130,seq_k=130,head_dim=64,dtype=bf16
SHAPES
  done
else
  table+=("compute-sanitizer is not here, so nothing ran under it")
fi
echo
printf '%s\n' "${table[@]}"
exit $failed
