#!/bin/sh
# Runs the fast tests, then those on a real Kafka, then the slow ones, so that most mistakes show early; those that start
# whole deployments and those on Spark come last, beside each other: both wait more than they work. Arguments go to
# pytest.
# JOBS=1 runs everything in one process, one after the other, which is quicker for a few (7 CPU seconds of imports less).
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
if [ "$jobs" -eq 1 ]; then
    run "slow kafka" 1 "kafka and slow and not spark" "$@"
    run spark 1 spark "$@"
    exit
fi
said=$(mktemp)
run spark 1 spark "$@" >"$said" 2>&1 &
spark=$!
trap 'kill "$spark" 2>/dev/null || true; rm -f "$said"' EXIT
failed=0
run "slow kafka" 1 "kafka and slow and not spark" "$@" || failed=$?
wait "$spark" || failed=$?
cat "$said"
exit "$failed"
