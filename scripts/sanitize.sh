#!/usr/bin/env bash
# scripts/sanitize.sh subset|threads|all JOBS: tests under sanitizers. `subset` builds only the tests labelled `hostile`,
# those of what reads files and frames, for the address sanitizer; `threads` those so labelled, for the thread sanitizer;
# `all` runs every test under the address and undefined-behaviour sanitizers, then those of threads.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=suppressions=$PWD/scripts/tsan_suppressions.txt
jobs=${2:-2}
run() {  # preset, target, ctest arguments
  local preset=$1 target=$2
  shift 2
  mkdir -p build
  cmake --preset "$preset" >"build/configure-$preset.log" 2>&1 || { cat "build/configure-$preset.log"; exit 1; }
  ninja -C "build/$preset" -j"$jobs" "$target"
  ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error "$@"
}
case "$1" in
  subset) run hostile hostile_tests -L hostile ;;
  threads) run tsan threads_tests -L threads ;;
  all)
    run asan all -LE 'stress|gpu'
    run tsan threads_tests -L threads
    ;;
  *) echo "usage: scripts/sanitize.sh subset|threads|all [JOBS]" >&2; exit 1 ;;
esac
