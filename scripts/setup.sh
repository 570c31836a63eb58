#!/usr/bin/env bash
# Makes .venv with everything that Roadstead, its tests and its lint need.
#
# Asks of the machine: python3 (3.11 or newer) and pip. The venv module, ensurepip and root are not needed, and
# nothing outside this folder is changed: uv comes into .tools by pip, and uv does the rest.
# A second run compares one checksum and ends.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { printf 'setup: %s\n' "$1" >&2; exit 1; }

python=${PYTHON:-python3}
tools=.tools
uv=$tools/bin/uv
stamp=.venv/.setup-stamp
members=(libs/common services/*/)

command -v "$python" >/dev/null || die "$python not found; install Python 3.11 or newer, or set PYTHON=/path/to/python3"
python_version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$python is $python_version; Roadstead needs 3.11 or newer (set PYTHON=/path/to/python3)"

wanted=$({ echo "$python_version $PWD"
    sha256sum requirements.lock scripts/uv.requirements scripts/setup.sh "${members[@]/%//pyproject.toml}"
} | sha256sum | cut -d' ' -f1)
is_current() { [[ -x .venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; }
is_current && exit 0

# Two `make` at once in one tree must not build the same environment twice over each other.
mkdir -p "$tools"
exec 9>"$tools/setup.lock"
flock -w 600 9 || die "another setup holds $tools/setup.lock for 10 minutes; end it and run again"
is_current && exit 0

started=$SECONDS
if ! cmp -s scripts/uv.requirements "$tools/uv.requirements"; then
    echo "setup: uv into $tools"
    "$python" -m pip --version >/dev/null 2>&1 || die "$python has no pip; install it (Debian: apt-get install python3-pip)"
    rm -rf "$tools/bin" "$tools"/uv "$tools"/uv-*
    "$python" -m pip install -qq --disable-pip-version-check --no-deps --require-hashes --upgrade \
        --target "$tools" -r scripts/uv.requirements ||
        die "pip could not fetch uv; check the network or pip's index setting"
    cp scripts/uv.requirements "$tools/uv.requirements"
fi

# uv does not read pip's settings: carry the machine's own index over.
if [[ -z ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]]; then
    index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
    [[ -z $index ]] || export UV_DEFAULT_INDEX=$index
fi
export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1 UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-120}

echo "setup: packages of requirements.lock into .venv (Python $python_version)"
if [[ ! -x .venv/bin/python ]] || ! .venv/bin/python -c "import sys; sys.exit('%d.%d.%d' % sys.version_info[:3] != '$python_version')"; then
    "$uv" venv --quiet --clear --python "$("$python" -c 'import sys; print(sys.executable)')" .venv
fi
rm -f "$stamp"
"$uv" pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock ||
    die "packages could not be installed; the lines above name the one (network down, or no wheel for this machine)"

# The lock already holds the build back end, so the members build without a look at any index.
editable=()
for member in "${members[@]}"; do editable+=(-e "./${member%/}"); done
"$uv" pip install --quiet --python .venv/bin/python --offline --no-deps --no-build-isolation "${editable[@]}"
echo "$wanted" >"$stamp"
echo "setup: done in $((SECONDS - started)) s"
