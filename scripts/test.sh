#!/usr/bin/env bash
# scripts/test.sh BUILD JOBS: all tests of a build, then the store, protocol and fuzz-corpus tests under the address
# sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
ctest --test-dir "$1" -j "$2" --output-on-failure --no-tests=error -LE 'stress-long'
scripts/sanitize.sh subset "$2"
