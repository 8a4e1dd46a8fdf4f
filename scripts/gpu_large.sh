#!/usr/bin/env bash
# scripts/gpu_large.sh BUILD: every op with more than 2^31 elements, on a machine with a GPU, a line each. Where an op has
# a reference for the device, `autotune check` holds all of each variant's results against it; the others, and
# extents that it would take minutes for, are launched through the dispatcher and compared in parts with PyTorch
# (tests/gpu/large.py). What the GPU's memory does not hold is skipped by name. ONLY (a pattern) narrows, LIMIT (120) is
# the seconds that one line may take.
set -uo pipefail
bin=$(realpath "$1")/bin
cd "$(dirname "$0")/.." || exit 1
[ -x "$bin/autotune" ] || { echo "error: there is no $bin/autotune: make gpu-build makes it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() {  # op, problem, chain or nothing
  local name="$1 $2" began=$SECONDS result
  [[ $name =~ ${ONLY:-.} ]] || return 0
  timeout -k 10 "${LIMIT:-120}" "$bin/autotune" check "$1" "$2" ${3:+--chain "$3"} --trial-limit 60 </dev/null >"$work/log" 2>&1
  local status=$?
  local right
  right=$(grep -cE '^  right ' "$work/log")
  case $status in
    0) result="right, $right variants" ;;
    124) result="not done in ${LIMIT:-120} s" ;;
    *) result="exit code $status" ;;
  esac
  [ "$status" = 0 ] && [ "$right" = 0 ] && result="no variant is valid" status=1
  if grep -qE 'error: .* needs .* on the GPU' "$work/log"; then
    result="skipped: $(grep -m1 -oE 'needs .*' "$work/log")"
  elif grep -qE 'error: CUDA_ERROR_OUT_OF_MEMORY' "$work/log"; then
    result="skipped: $(grep -m1 -oE 'CUDA_ERROR_OUT_OF_MEMORY .*' "$work/log")"
  elif [ "$status" != 0 ]; then
    failed=1
    echo "== $name"
    cat "$work/log"
  fi
  printf '%-90s %4d s  %s\n' "$name" $((SECONDS - began)) "$result"
}

while read -r op problem; do
  [ -n "$op" ] && check "$op" "$problem"
done <<'PROBLEMS'
softmax rows=540000,cols=4096,dtype=bf16
softmax rows=3,cols=1000000000,dtype=bf16
softmax rows=44000,cols=50257,dtype=f16
log_softmax rows=540000,cols=4096,dtype=bf16
masked_softmax batch=5,heads=16,queries=5200,keys=5200,dtype=bf16
masked_softmax batch=5,heads=16,queries=5200,keys=5200,dtype=bf16,mask=add,causal=true
softmax_backward rows=540000,cols=4096,dtype=bf16
cross_entropy rows=17000,cols=128256,dtype=bf16
layernorm rows=540000,cols=4096,dtype=bf16
rmsnorm rows=540000,cols=4096,dtype=bf16,residual=true
rmsnorm rows=540000,cols=4096,dtype=bf16,out=e4m3
layernorm_backward rows=540000,cols=4096,dtype=bf16
rmsnorm_backward rows=540000,cols=4096,dtype=bf16,dh=true
reduce outer=540000,n=4096,dtype=bf16
reduce outer=1,n=2200000000,dtype=f32
reduce outer=1,n=540000,inner=4096,dtype=bf16
argreduce outer=1,n=2200000000,dtype=bf16
argreduce outer=540000,n=4096,dtype=bf16
argreduce outer=2,n=270000,inner=4096,dtype=bf16
transpose rows=50000,cols=44000,dtype=bf16
transpose rows=50001,cols=43999,dtype=u8
permute d0=8,d1=4200,d2=512,d3=128,dtype=bf16
permute d0=8,d1=4200,d2=512,d3=128,order=312,dtype=u8
copy rows=540000,cols=4096,dtype=bf16
copy rows=540000,cols=4096,ldx=4100,dtype=bf16
quantise rows=540000,cols=4096,dtype=bf16
quantise rows=540000,cols=4096,dtype=bf16,scales=tensor,format=int8
quantise rows=540000,cols=4096,dtype=bf16,scales=block,format=int4
dequantise rows=540000,cols=4096,dtype=bf16,scales=block
rope tokens=360000,q_heads=32,kv_heads=8,dim=128,dtype=bf16
scan rows=1,n=2200000000,dtype=f32
scan rows=540000,n=4096,dtype=bf16,exclusive=true
unique n=2200000000,dtype=i32
histogram n=2200000000,bins=256,dtype=f32
histogram n=4400000000,bins=100000,dtype=bf16
gemm m=65536,n=33000,k=64,dtype=bf16
gemm m=65536,n=33000,k=64,dtype=f32
attention batch=64,q_heads=64,kv_heads=64,seq_q=4200,seq_k=64,head_dim=128,dtype=bf16,causal=false
PROBLEMS
check large_bias "rows=540000,cols=4096,bias_rows=1,dtype=bf16" "large_bias = relu(x + bias)"
check large_drop "rows=540000,cols=4096,dtype=bf16" "large_drop = dropout(a + b, p)"

library=$bin/../lib/libautotune.so.1
if [ -e "$library" ] && [[ large.py =~ ${ONLY:-.} ]]; then
  python3 tests/gpu/large.py --library "$library" </dev/null
  case $? in
    0 | 77) ;;
    *) failed=1 ;;
  esac
fi
exit $failed
