# Sourced by the other scripts: a virtual environment in .venv with bertcli and the extras named in EXTRAS.
# PYTHON names the interpreter (3.11 or later).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "error: $python is older than Python 3.11; name a newer one: PYTHON=python3.12 $0" >&2
  exit 2
}
[ -x .venv/bin/python ] || "$python" -m venv .venv
# The pinned torch comes first: left to the extras, pip may take another build of it.
.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt torch
.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".${EXTRAS:-}"
export PATH="$PWD/.venv/bin:$PATH"
