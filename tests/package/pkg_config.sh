#!/bin/sh
# pkg_config.sh FOLDER SOURCE CC FLAGS...: builds and runs the C example as one who knows pkg-config alone would.
set -eu
folder=$1 source=$2
shift 2
PKG_CONFIG_PATH=$(find "$folder/prefix" -type d -name pkgconfig)
export PKG_CONFIG_PATH
mkdir -p "$folder/pkg_config"
# shellcheck disable=SC2046 -- words are what pkg-config gives
"$@" -std=c99 -pedantic -Wall -Wextra -Werror -o "$folder/pkg_config/dispatch_c" "$source/examples/dispatch_c/main.c" \
  $(pkg-config --cflags --libs autotune) -lm -ldl -Wl,-rpath,"$(pkg-config --variable=libdir autotune)"
exec "$folder/pkg_config/dispatch_c" 300 1000
