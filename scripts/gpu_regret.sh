#!/usr/bin/env bash
# scripts/gpu_regret.sh BUILD [flags of regret]: on a machine with a GPU, in less than nine minutes: what searches of gemm,
# attention, softmax and the matmul example leave on the table. RECORDS is a folder that keeps what was timed as recorded
# spaces. The short table comes last. 77: there is no GPU.
set -euo pipefail
bin=$(realpath "$1")/bin
cd "$(dirname "$0")/.."
[ -x "$bin/regret" ] || { echo "error: there is no $bin/regret: make gpu-build makes it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AUTOTUNE_DB=$work/tune.db AUTOTUNE_CACHE_DIR=$work
"$bin/autotune" doctor >"$work/doctor" 2>&1 || true
grep -qE '^(ok|warn) +gpu 0' "$work/doctor" || { echo "skipped: there is no GPU here"; exit 77; }
"$bin/regret" ${RECORDS:+--records "$RECORDS"} "${@:2}"
