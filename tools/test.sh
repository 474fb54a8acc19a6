#!/bin/sh
# Runs the fast tests, then those on a real Kafka, then the slow ones, so that most mistakes show early. Arguments go
# to pytest.
# JOBS=2 shares them between two processes: that costs 7 CPU seconds of imports, so it pays off only for a long run.
set -eu
cd "$(dirname "$0")/.."

# pytest answers 5 when nothing was selected, which is no failure: ARGS may name a file without tests of the kind.
run() {
    echo "tests: the $1 ones"
    shift
    .venv/bin/python -m pytest -n "${JOBS:-0}" --dist worksteal -m "$@" || [ $? -eq 5 ]
}

run fast "not slow and not kafka" "$@"
run kafka "kafka and not slow" "$@"
run slow "slow" "$@"
