#!/usr/bin/env bash
# scripts/fuzz.sh JOBS: every fuzz target for SECONDS_EACH (60) seconds with libFuzzer, from the committed corpus. An
# input that fails is kept in build/fuzz/crashes and ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
cmake --preset fuzz >build/configure-fuzz.log 2>&1 || { cat build/configure-fuzz.log; exit 1; }
ninja -C build/fuzz -j"${1:-2}" fuzz_targets
mkdir -p build/fuzz/crashes
# Some targets make files for each input; none of them has to outlive a crash of the machine.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
  TMPDIR=$(mktemp -d /dev/shm/autotune-fuzz-XXXXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi
for program in build/fuzz/bin/*_fuzz; do
  name=$(basename "$program" _fuzz)
  mkdir -p "build/fuzz/corpus/$name"
  seeds=()
  [ ! -d "tests/fuzz/corpus/$name" ] || seeds=("tests/fuzz/corpus/$name")
  echo "fuzzing $name for ${SECONDS_EACH:-60} s"
  "$program" -max_total_time="${SECONDS_EACH:-60}" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/crashes/ "build/fuzz/corpus/$name" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1 || {
    tail -40 "build/fuzz/$name.log"
    echo "error: $name found an input that fails: see build/fuzz/crashes" >&2
    exit 1
  }
  grep number_of_executed_units "build/fuzz/$name.log"
done
