#!/usr/bin/env bash
# scripts/sanitize.sh all|subset JOBS: tests under sanitizers. `subset` builds only the tests labelled `hostile`, those
# of what reads files and frames; `all` runs every other test too, and those labelled `threads` under tsan.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
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
  all) run asan all -LE 'stress|gpu' && run tsan threads_tests -L threads ;;
  *) echo "usage: scripts/sanitize.sh all|subset [JOBS]" >&2; exit 1 ;;
esac
