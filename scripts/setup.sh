#!/usr/bin/env bash
# Installs what autotune needs to build and that is missing: system packages, and the CUDA headers and NVRTC as pip
# wheels in a venv of the build folder where there is no toolkit. Debian 12 or Ubuntu 24.04; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake ninja-build ccache mold libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev
  libeigen3-dev libsqlite3-dev libsodium-dev zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev pkg-config python3 python3-venv)
case "${1:-}" in
  "") ;;
  fuzz) packages+=(clang-16 libclang-rt-16-dev) ;;
  tidy) packages+=(clang-tidy-16) ;;  # 14 does not know std::source_location
  *) echo "usage: scripts/setup.sh [fuzz|tidy]" >&2; exit 1 ;;
esac

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "error: these Debian packages are missing, and there is no apt-get to install them: ${missing[*]}" >&2
    echo "help: install their counterparts of your system, then run make again" >&2
    exit 1
  fi
  sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "error: installing ${missing[*]} needs root" >&2
      echo "help: as root: apt-get install ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  echo "installing ${missing[*]}"
  install() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; }
  install >/dev/null 2>&1 || { "${sudo[@]}" apt-get update -qq && install >/dev/null; }
fi

# The CUDA headers and NVRTC: a toolkit of 12.0 or newer, else wheels. The driver is opened at run time.
venv=build/cuda
include=
for folder in "${AUTOTUNE_CUDA_INCLUDE:-}" "${CUDA_HOME:-}/include" "${CUDA_PATH:-}/include" /usr/local/cuda/include; do
  if [ -f "$folder/cuda.h" ] && [ -f "$folder/nvrtc.h" ] && [ -f "$folder/cuda_fp16.h" ]; then include=$folder; break; fi
done
nvrtc=
for folder in "${CUDA_HOME:-}/lib64" "${CUDA_PATH:-}/lib64" /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
  if compgen -G "$folder/libnvrtc.so.1[2-9]*" >/dev/null; then nvrtc=$folder; break; fi
done
if [ -z "$include" ] || [ -z "$nvrtc" ]; then
  if ! compgen -G "$venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13" >/dev/null; then
    echo "no CUDA toolkit here: taking the CUDA 13.0 headers and NVRTC from wheels into $venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 \
      nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 || {
      echo "error: the CUDA wheels could not be installed" >&2
      echo "help: install the CUDA toolkit 12.0 or newer, or set CUDA_HOME to one" >&2
      exit 1
    }
  fi
fi
