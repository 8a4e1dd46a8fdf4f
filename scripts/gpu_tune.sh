#!/usr/bin/env bash
# scripts/gpu_tune.sh BUILD: on a machine with a GPU: tunes every op at each of its types, for its default problem and for
# three ragged ones (BUDGET a problem, 10s), checks every record that this left, and runs the example application.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AUTOTUNE_CACHE_DIR=$work
failed=()

tune() {
  local op=$1
  echo "== $op"
  "$bin/autotune" tune "$op" --problems "$work/$op.txt" --budget "${BUDGET:-10s}" --progress none || failed+=("tune $op")
}

for dtype in f32 f16 bf16; do
  echo "dtype=$dtype"
  echo "dtype=$dtype,rows=37,cols=1003"
  echo "dtype=$dtype,rows=129,cols=4097"
  echo "dtype=$dtype,rows=3,cols=131073"
done >"$work/softmax.txt"
echo "rows=4096,cols=4096,dtype=f32" >>"$work/softmax.txt"  # the example's

for dtype in f32 f16 bf16; do
  echo "dtype=$dtype"
  echo "dtype=$dtype,m=1000,n=1023,k=777,trans_b=true"
  echo "dtype=$dtype,m=1,n=4097,k=129"
  echo "dtype=$dtype,m=333,n=65,k=1023,trans_a=true,bias=true,act=gelu"
done >"$work/gemm.txt"

for dtype in f16 bf16; do
  echo "dtype=$dtype"
  echo "dtype=$dtype,batch=1,q_heads=8,kv_heads=2,seq_q=1000,seq_k=1777,head_dim=80,causal=true"
  echo "dtype=$dtype,batch=2,q_heads=3,kv_heads=1,seq_q=65,seq_k=63,head_dim=128,causal=false"
  echo "dtype=$dtype,batch=1,q_heads=4,kv_heads=4,seq_q=1,seq_k=2049,head_dim=64,causal=false"
done >"$work/attention.txt"

for op in softmax gemm attention; do tune "$op"; done
echo "== verify"
"$bin/autotune" verify || failed+=(verify)
if [ -x "$bin/dispatch_softmax" ]; then
  "$bin/dispatch_softmax" 4096 4096 || failed+=(dispatch_softmax)
fi
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
echo "every op was tuned at each type, and every record holds"
