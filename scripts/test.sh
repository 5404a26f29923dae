#!/usr/bin/env bash
# Lint, types and the whole suite, in a virtual environment of its own.
EXTRAS="[test]"
source "$(dirname "$0")/environment.sh"

ruff check .
ruff format --check .
pyright
for other in python3.12 python3.13 python3.14; do  # those at hand read every file; their warnings are errors
  "$other" -c "" 2> /dev/null || continue
  "$other" -W error -m compileall -q bertcli tests scripts
done
# Without compiled files, each of the suite's processes would compile the package again.
unset PYTHONDONTWRITEBYTECODE
pytest -n "$(nproc 2>/dev/null || sysctl -n hw.ncpu)" --dist worksteal "$@"
