#!/bin/sh
# Writes requirements/*.txt from requirements/*.in: exact versions with the hashes of all their files.
# Runs on the oldest Python the project supports, since a newer one would choose versions the oldest cannot install.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3.11}
if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" != 3.11 ]; then
    echo "make pins needs Python 3.11, the oldest supported, and '$python' is not one; name it: make pins PYTHON=…" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "pins: preparing the pinning tool"
"$python" -m venv "$work/venv"
if [ -f requirements/pins.txt ]; then
    "$work/venv/bin/pip" install -q --require-hashes --only-binary :all: -r requirements/pins.txt
else
    "$work/venv/bin/pip" install -q -r requirements/pins.in
fi

# runtime comes first, and binds the others: one environment holds them all.
constraints=
for purpose in runtime build services kafka test check spark pins; do
    echo "pins: requirements/$purpose.txt"
    # shellcheck disable=SC2086
    CUSTOM_COMPILE_COMMAND="make pins" "$work/venv/bin/pip-compile" --quiet --upgrade --strip-extras --allow-unsafe \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        --resolver=backtracking --annotation-style=line $constraints \
        --output-file="requirements/$purpose.txt" "requirements/$purpose.in"
    constraints="$constraints -c requirements/$purpose.txt"
done
