#!/usr/bin/env bash
# scripts/gpu_test.sh BUILD: the test programs that need a GPU, then compute-sanitizer on small shapes, then every op
# beyond 2^31 elements (scripts/gpu_large.sh); a table comes last. Runs the programs themselves: neither CMake nor the
# place where they were built is needed. ONLY (a pattern) narrows, LIMIT (300) is the seconds that one line may take,
# TOOLS (memcheck racecheck) are compute-sanitizer's, LOGS is a folder that keeps what they said.
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

run() {  # name, command: a line of the table; `unwanted` is what the log must not hold, `wanted` what it must
  local name=$1 log=$logs/$1.log began=$SECONDS result=passed
  shift
  [[ $name =~ ${ONLY:-.} ]] || return 0
  timeout -k 10 "${LIMIT:-300}" "$@" </dev/null >"$log" 2>&1
  local status=$?
  [ $status = 77 ] && result="skipped: $(grep -m1 -oE 'skipped: [^;]*' "$log" | cut -c10-)"
  [ $status = 124 ] && result="not done in ${LIMIT:-300} s"
  [ $status = 0 ] || [ $status = 77 ] || [ $status = 124 ] || result="exit code $status"
  [ $status = 0 ] && [ -n "${unwanted:-}" ] && grep -qE "$unwanted" "$log" && result="errors found"
  [ $status = 0 ] && [ -n "${wanted:-}" ] && ! grep -qE "$wanted" "$log" && result="its output lacks '$wanted'"
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

  # An application that brings its tuning along needs neither a database nor a compiler. Those in installed/ are built
  # against the installed package alone.
  bundle=$work/tuned.bundle
  run bundle_tune "$bin/autotune" tune softmax rows=300,cols=1000,dtype=f32 --budget 10 --effort quick --db "$work/b/tune.db"
  run bundle_tune_bf16 "$bin/autotune" tune softmax rows=300,cols=1000,dtype=bf16 --budget 10 --effort quick --db "$work/b/tune.db"
  wanted='^[1-9][0-9]* records and [1-9]' run bundle_make "$bin/autotune" db bundle --binaries -o "$bundle" --db "$work/b/tune.db"
  alone=(env AUTOTUNE_NVRTC=/nonexistent AUTOTUNE_DB="$work/none/tune.db" AUTOTUNE_SYSTEM_DB="$work/none/system.db")
  for folder in "$bin" "$bin/installed"; do
    for example in dispatch_c dispatch_softmax; do
      [ ! -x "$folder/$example" ] || wanted='dtype=f32: exact \(.*' c_example \
        "bundle_$example$([ "$folder" = "$bin" ] || echo _installed)" "${alone[@]}" "$folder/$example" 300 1000 "$bundle"
    done
  done
  wanted='dtype=bf16: exact \(' run bundle_python "${alone[@]}" \
    python3 examples/python/dispatch.py --library "$library" --bundle "$bundle" 300 1000
fi
run share scripts/gpu_share.sh "$1"

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
LIMIT=900 run large env LIMIT=120 ONLY=. scripts/gpu_large.sh "$1"
echo
printf '%s\n' "${table[@]}"
exit $failed
