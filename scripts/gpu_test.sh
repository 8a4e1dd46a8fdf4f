#!/usr/bin/env bash
# scripts/gpu_test.sh BUILD: the test programs that need a GPU, then compute-sanitizer on small shapes. Runs the programs
# themselves, so that a build made elsewhere serves.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1/bin
export AUTOTUNE_TEST_DATA=${AUTOTUNE_TEST_DATA:-$PWD/tests}
failed=()
run() {
  local name=$1
  shift
  echo "== $name"
  if timeout "${LIMIT:-300}" "$@" >"$name.log" 2>&1; then
    grep -E '^\[  (PASSED|SKIPPED)' "$name.log" || tail -1 "$name.log"
  else
    failed+=("$name")
    tail -"${LINES_SHOWN:-40}" "$name.log"
  fi
  rm -f "$name.log"
}
for program in "$bin"/*_gpu_test; do run "$(basename "$program")" "$program" --gtest_brief=1; done
run selftest "$bin/autotune" selftest
if command -v compute-sanitizer >/dev/null; then
  small=(rows=37,cols=1000,dtype=bf16)
  run memcheck_softmax compute-sanitizer --target-processes all --error-exitcode 9 "$bin/autotune" tune softmax "${small[@]}" --budget 12 --effort quick --db none --workers 4 --trial-limit 60
  run memcheck_gemm compute-sanitizer --target-processes all --error-exitcode 9 "$bin/autotune" tune gemm m=130,n=72,k=70,dtype=bf16 --budget 12 --effort quick --db none --workers 4 --trial-limit 60
  run memcheck_attention compute-sanitizer --target-processes all --error-exitcode 9 "$bin/autotune" tune attention batch=1,q_heads=2,kv_heads=1,seq_q=130,seq_k=130,head_dim=64,dtype=bf16 --budget 12 --effort quick --db none --workers 4 --trial-limit 60
else
  echo "skipped: compute-sanitizer is not here"
fi
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
echo "all GPU tests passed"
