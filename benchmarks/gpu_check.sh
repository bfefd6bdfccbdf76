#!/bin/sh
# Checks a GPU for the dense index and the encoder. Needs Python with torch and numpy, nothing else.
#
# usage: gpu_check.sh [--device cpu] [--seconds N] [...]      see gpu_check.py --help
#
# PYTHON names the interpreter (default: python3). Prints one JSON object on stdout.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/gpu_check.py" "$@"
