#!/usr/bin/env bash
# scripts/gpu_bench.sh BUILD: the benchmark tables, on a machine with a GPU. The short table comes last. BUDGET (20s) is
# a problem's; ONLY=gemm narrows, ONLY=dispatcher gives the cost of a launch through it, and ONLY=rowops the row ops,
# reductions, layout, lists and chains (ROWOPS: more words for benchmarks/rowops.py; their BUDGET is 4s).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ ${ONLY:-dispatcher} == dispatcher ]]; then "$bin/dispatch_gpu_bench"; fi
if [[ ${ONLY:-} == dispatcher ]]; then exit; fi
failed=0
if [[ ${ONLY:-rowops} == rowops ]]; then
  # shellcheck disable=SC2086  # words
  python3 benchmarks/rowops.py --autotune "$bin/autotune" --budget "${BUDGET:-4s}" --db "$work/rowops.db" ${ROWOPS:-} || failed=1
fi
if [[ ${ONLY:-} == rowops ]]; then exit $failed; fi
python3 benchmarks/beside_libraries.py --autotune "$bin/autotune" --budget "${BUDGET:-20s}" --db "$work/bench.db" ${ONLY:+--only "$ONLY"} || failed=1
exit $failed
