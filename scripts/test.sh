#!/usr/bin/env bash
# Lint, types and the whole suite, in a virtual environment of its own.
EXTRAS="[test]"
source "$(dirname "$0")/environment.sh"

ruff check .
ruff format --check .
pyright
pytest -n "$(nproc 2>/dev/null || sysctl -n hw.ncpu)" --dist worksteal "$@"
