#!/bin/sh
# Makes .venv with the pinned packages and the project in it, compiles the kernels, and fetches Kafka and what Spark
# needs. Does that once.
set -eu
cd "$(dirname "$0")/.."

venv_python=.venv/bin/python

# Whether $1 runs, is new enough and can make environments. A name on PATH is no proof: a shim may stand for nothing.
usable() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

choose_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
        if usable "$candidate"; then
            echo "$candidate"
            return
        fi
        if [ -n "${PYTHON:-}" ]; then
            echo "setup: '$PYTHON' is no Python 3.11 or newer with the modules venv and ensurepip." >&2
            return 1
        fi
    done
    found=$(python3 --version 2>/dev/null) || found=none
    echo "setup: Skyband needs Python 3.11 or newer with the modules venv and ensurepip; python3 here is: $found." >&2
    echo "setup: install one (on Debian and Ubuntu also the package python3-venv), or name it: make setup PYTHON=…" >&2
    return 1
}

# What the environment was made from. The place counts too: scripts in .venv hold its full path.
fingerprint() {
    { pwd; cat requirements/*.txt pyproject.toml tools/setup.sh; "$venv_python" -V; } | cksum | tr ' ' '-'
}

if usable "$venv_python" && [ -f ".venv/setup-$(fingerprint)" ]; then
    exec "$venv_python" tools/stale_kernels.py
fi

if ! usable "$venv_python"; then
    python=$(choose_python)
    echo "setup: making .venv with $("$python" -V)"
    "$python" -m venv --clear .venv
fi
rm -f .venv/setup-*

echo "setup: installing the pinned packages (about 700 MB to fetch the first time, a few minutes)"
pip() {
    "$venv_python" -m pip --disable-pip-version-check --quiet "$@"
}
pip install --require-hashes --only-binary :all: \
    -r requirements/build.txt -r requirements/runtime.txt -r requirements/services.txt -r requirements/test.txt \
    -r requirements/check.txt -r requirements/spark.txt
# PySpark comes as source alone: it is jars and Python, and is packed anew with setuptools.
pip install --require-hashes --only-binary :all: --no-binary pyspark -r requirements/kafka.txt
pip install --no-deps --no-build-isolation --editable .

"$venv_python" tools/stale_kernels.py
echo "setup: compiling the kernels, once, and fetching Kafka and Spark's readers beside it"
# What does not need Kafka works without it, and who needs it tries again and says why it fails.
{
    "$venv_python" -m services.runtime.embedded fetch || echo "setup: going on without Kafka" >&2
    "$venv_python" -m spark.prepare || echo "setup: going on without Spark" >&2
} &
trap 'kill "$!" 2>/dev/null || true' EXIT
"$venv_python" -m skyband.local.warm
"$venv_python" -m services.runtime.warm
wait
trap - EXIT
touch ".venv/setup-$(fingerprint)"
echo "setup: ready; .venv/bin/skyband is the command"
