#!/usr/bin/env bash
# Resolves every member's dependencies anew and writes requirements.lock: pinned, hashed, without an index address.
# uv.lock, which uv needs in between, names the index of this machine and is therefore not committed.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -x .tools/bin/uv ]] || { echo "lock: .tools/bin/uv is missing; run make setup first" >&2; exit 1; }
export UV_PYTHON_DOWNLOADS=never
.tools/bin/uv lock --quiet ${UPGRADE:+--upgrade}
.tools/bin/uv export --quiet --all-packages --no-emit-workspace --frozen --no-header --output-file requirements.lock
if grep -nE 'https?://|index-url' requirements.lock; then
    echo "lock: an address stands in requirements.lock (lines above); remove the direct reference that brought it" >&2
    exit 1
fi
echo "lock: $(grep -cE '^[A-Za-z0-9]' requirements.lock) packages pinned in requirements.lock"
