#!/bin/sh
# Runs the fast tests, then those on a real Kafka, then the slow ones, then those on Spark, so that most mistakes show
# early. Arguments go to pytest.
# JOBS=1 runs them in one process, which is quicker for a few (7 CPU seconds of imports less); those that start whole
# deployments run one after the other in any case.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}

# pytest answers 5 when nothing was selected, which is no failure: ARGS may name a file without tests of the kind.
run() {
    echo "tests: the $1 ones"
    workers=$2
    [ "$workers" -gt 1 ] || workers=0
    shift 2
    .venv/bin/python -m pytest -n "$workers" --dist worksteal -m "$@" || [ $? -eq 5 ]
}

run fast "$jobs" "not slow and not kafka and not spark" "$@"
run kafka 1 "kafka and not slow and not spark" "$@"
run slow "$jobs" "slow and not kafka and not spark" "$@"
run "slow kafka" 1 "kafka and slow and not spark" "$@"
run spark 1 spark "$@"
