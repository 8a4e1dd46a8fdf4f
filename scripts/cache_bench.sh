#!/usr/bin/env bash
# scripts/cache_bench.sh BUILD [flags of cache_bench]: what the cache, the dispatcher and sharing cost beside what they
# may.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
"$1/bin/cache_bench" "${@:2}"
