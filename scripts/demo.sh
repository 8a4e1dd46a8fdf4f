#!/usr/bin/env bash
# scripts/demo.sh BIN: tunes softmax on the GPU; without one, on the emulator, and shows what there is.
set -euo pipefail
bin=$1
if "$bin/autotune" doctor >build/doctor.txt 2>&1; then
  "$bin/autotune" --op softmax --problem rows=32768,cols=4096,dtype=bf16 --budget 20s
  "$bin/autotune" query softmax
  exit
fi
echo "There is no usable GPU here, so nothing can be timed. All else works on the emulator:"
echo
echo '$ autotune --op softmax --budget 20s --db none'
"$bin/autotune" --op softmax --budget 20s --db none
echo
echo '$ autotune ops'
"$bin/autotune" ops
echo
echo '$ autotune space softmax --gpu sm_86'
"$bin/autotune" space softmax --gpu sm_86
echo
echo '$ autotune doctor'
cat build/doctor.txt
echo
echo "To tune for real: run make demo on a machine with an NVIDIA GPU (capability 7.5 or newer) and driver 525 or newer."
