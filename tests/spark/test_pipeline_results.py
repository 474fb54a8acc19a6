"""Results go into the log once, whatever happens between a micro-batch and the next."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from skyband.errors import DefinitionError, LogError
from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.log.clock import SystemClock
from skyband.log.memory import MemoryLog
from skyband.log.read_range import read_all
from skyband.model.partials import MergeProgress
from skyband.model.result import Result
from skyband.model.source_rows import DeadLetter
from spark.pipeline_group import check_queries
from spark.pipeline_results import ResultWriter
from tests.kafka.scenarios import mixed
from tests.spark.pipeline_runs import Runs, S, Worker, change_of, plan_of, values_of

SCENARIO = mixed("mixed", 300, idle={"then": "hold"}, seed=8).closed(120 * S)
QUERIES = tuple(change_of("mixed", query, SCENARIO) for query in SCENARIO.queries)


@pytest.fixture
def log() -> MemoryLog:
    log = MemoryLog(SystemClock())
    for name, partitions in {"partials": 4, "marks": 4, "results": 2, "progress": 1, "dead-letters": 2}.items():
        log.create_topic(name, partitions)
    return log


def halves(runs: Runs) -> Iterator[None]:
    """Bring the first half of each partition's rows, then the other."""
    for half in (0, 1):
        runs.take({key: v[: len(v) // 2] if half == 0 else v[len(v) // 2 :] for key, v in values_of(SCENARIO).items()})
        yield


def written(log: MemoryLog) -> list[Result]:
    return [record.value for record in read_all(log, "results") if isinstance(record.value, Result)]


def test_a_micro_batch_that_is_written_again_writes_nothing_twice(log: MemoryLog) -> None:
    runs = Runs(plan_of(SCENARIO, queries=QUERIES), [Worker()])
    writer = ResultWriter(log, "mixed", 1)
    for _ in halves(runs):
        writer.write(runs.told)
        writer.write(runs.told)
        writer = ResultWriter(log, "mixed", 1)
        writer.write(runs.told)
    by_time = sorted(written(log), key=lambda its: (its.uid, its.window_end))
    assert by_time == sorted(runs.results, key=lambda its: (its.uid, its.window_end))
    letters = [record.value for record in read_all(log, "dead-letters")]
    assert letters
    assert all(isinstance(letter, DeadLetter) for letter in letters)
    told = [record.value for record in read_all(log, "progress") if isinstance(record.value, MergeProgress)]
    assert told[-1].frontier_us == writer.frontier_us


@pytest.mark.parametrize("is_stored", [True, False])
def test_after_a_transaction_of_unknown_outcome_the_marks_decide(
    log: MemoryLog, is_stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(plan_of(SCENARIO, queries=QUERIES), [Worker()])
    writer = ResultWriter(log, "mixed", 1)
    for _ in halves(runs):
        commit = writer._committer.commit

        def fails(its: object, commit: object = commit) -> None:
            if is_stored:
                commit(its)  # type: ignore[operator]
            raise LogError("nobody knows whether it was stored")

        monkeypatch.setattr(writer._committer, "commit", fails)
        writer.write(runs.told)
    assert len(written(log)) == len(runs.results) > 0


def test_another_pipeline_of_the_group_shuts_the_older_one_out(log: MemoryLog) -> None:
    runs = Runs(plan_of(SCENARIO, queries=QUERIES), [Worker()])
    older = ResultWriter(log, "mixed", 1)
    steps = halves(runs)
    next(steps)
    newer = ResultWriter(log, "mixed", 1)
    with pytest.raises(LogError):
        older.write(runs.told)
    newer.write(runs.told)
    assert len(written(log)) == len(runs.results)


def test_a_new_generation_goes_on_behind_what_the_older_one_has_written(log: MemoryLog) -> None:
    first = Runs(plan_of(SCENARIO, queries=QUERIES), [Worker()])
    writer = ResultWriter(log, "mixed", 1)
    next(halves(first))
    writer.write(first.told)
    writer = ResultWriter(log, "mixed", 2)
    second = Runs(plan_of(SCENARIO, queries=QUERIES, generation=2, carried=writer.carried()), [Worker()])
    for _ in halves(second):
        writer.write(second.told)
    whole = Runs(plan_of(SCENARIO, queries=QUERIES), [Worker()])
    list(halves(whole))
    found = written(log)
    assert len({(its.uid, its.window_end) for its in found}) == len(found) == len(whole.results)
    alive: dict[bytes | None, object] = {}
    for record in read_all(log, "marks"):
        alive[record.key] = record.value
    kept = {key: value for key, value in alive.items() if value is not None}
    assert all((key or b"").startswith(b"mixed/2") for key in kept)
    assert {type(value) for value in kept.values()} == {Mark, MergeCheckpoint}


def test_a_file_whose_queries_have_changed_is_refused(log: MemoryLog) -> None:
    named = tuple(replace(change, uid=f"mixed.{change.uid}") for change in QUERIES)
    runs = Runs(plan_of(SCENARIO, queries=named), [Worker()])
    writer = ResultWriter(log, "mixed", 1)
    next(halves(runs))
    writer.write(runs.told)
    check_queries(plan_of(SCENARIO, queries=named, carried=writer.carried()))
    check_queries(plan_of(SCENARIO, carried=writer.carried()))
    changed = plan_of(
        SCENARIO, queries=(named[0], replace(named[1], query=replace(named[1].query, k=7))), carried=writer.carried()
    )
    with pytest.raises(DefinitionError, match=r": mixed\.all, mixed\.far;"):
        check_queries(changed)
