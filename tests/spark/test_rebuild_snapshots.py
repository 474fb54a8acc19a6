"""A snapshot of a rebuilt shard stands where results are written, and an engine goes on from it as if it had run."""

from dataclasses import replace

import pytest

from services.runtime.settings import KafkaSettings
from skyband.align.source import CATALOG_KEY
from skyband.coverage.sequencer import Sequencer
from skyband.engine.activations import activations_of
from skyband.engine.shard import Shard
from skyband.engine.snapshot import Snapshot
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.partials import Activated, PartialBatch
from spark.rebuild_snapshots import SnapshotPlan, snapshot_at_cut
from tests.engine.test_snapshot import said
from tests.spark.rebuild_logs import Log, Rows, rebuilt, written
from tests.workloads import seeded


def plan_of(group: Group, rows: Rows, written_us: int, slide_us: int) -> SnapshotPlan:
    return SnapshotPlan(
        kafka=KafkaSettings(bootstrap="localhost:1"),
        group=group,
        generation=2,
        starts=dict.fromkeys((CATALOG_KEY, *rows), 0),
        written_us=written_us,
        longest_slide_us=slide_us,
        rebuild_id="1",
        ends={},
    )


def new_shard(plan: SnapshotPlan) -> Shard:
    return Shard(plan.group, 2, 0, Sequencer(plan.group, 2, 0, plan.starts, 1 << 40))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_told_from_it_on_is_what_the_shard_that_ran_throughout_tells(seed: int) -> None:
    group, queries, rows = seeded(seed, 200, counts=False)
    log: Log = rebuilt(group, written(group, queries, rows, 2, seed), 1)[0]
    group = replace(group, shards=1)
    slide_us = max(query.window.slide for query in queries)
    whole, told = new_shard(plan_of(group, rows, 0, slide_us)), []
    passed = []
    for batch in log:
        whole.offer(batch)
        told.append(whole.advance())
        passed.append(whole.passed_us)
    cuts = 0
    for written_us in sorted(set(passed))[1:-1:3]:
        plan = plan_of(group, rows, written_us, slide_us)
        snapshot = snapshot_at_cut(plan, 0, enumerate(log))
        if snapshot is None:
            continue
        cuts += 1
        at = snapshot.checkpoint.aligned_offset
        assert snapshot.checkpoint.standing.passed_us <= written_us
        for values in told[:at]:
            ends = [e.window_end for value in values if isinstance(value, PartialBatch) for e in value.evaluations]
            assert max(ends, default=MIN_TIME_US) <= written_us
        shard = new_shard(plan)
        shard.restore_snapshot(Snapshot.from_bytes(snapshot.to_bytes()))
        for batch, values in zip(log[at:], told[at:], strict=True):
            shard.offer(batch)
            assert said(list(shard.advance())) == said(list(values))
    assert cuts or len(set(passed)) < 4


def test_who_takes_it_up_can_tell_which_queries_run_and_from_when_on() -> None:
    group, queries, rows = seeded(3, 200, counts=False)
    log: Log = rebuilt(group, written(group, queries, rows, 2, 3), 1)[0]
    plan = plan_of(replace(group, shards=1), rows, 10**17, 0)
    shard = new_shard(plan)
    begun: dict[str, Activated] = {}
    for batch in log:
        shard.offer(batch)
        begun.update({value.uid: value for value in shard.advance() if isinstance(value, Activated)})
    told = activations_of(shard.snapshot(len(log)).checkpoint)
    assert {its.uid for its in told} == set(shard.uids())
    for its in told:
        assert its.revision == begun[its.uid].revision
        assert its.first_us > shard.passed_us
        assert (its.group, its.generation, its.shard) == (group.name, 2, 0)
    assert told
