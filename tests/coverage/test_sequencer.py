"""What a shard knows of time, and how it finds repeats, gaps and rows that are overtaken."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from skyband.coverage.sequencer import Sequencer
from skyband.errors import CapacityError, CoverageGapError, LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.stream import Attribute, Stream
from tests.coverage.batches import Partition, group, listed, make_batch

S = 1_000_000
CAP = 1_000_000


def sequencer(*delays_us: int, holds: bool = False) -> tuple[Sequencer, list[Partition]]:
    starts = {(index, 0): 0 for index in range(len(delays_us))}
    partitions = [Partition(index, 0, delay) for index, delay in enumerate(delays_us)]
    return Sequencer(group(*delays_us, holds=holds), 1, 0, starts, CAP), partitions


def read(shard: Sequencer, partition: Partition, *events_us: int, written_us: int = 0, **section: int) -> None:
    """Let align read some rows of one partition and the shard read the batch."""
    low = partition.cursor
    for event in events_us:
        partition.read(event)
    shard.offer(make_batch([partition.section(low, partition.cursor, **section)], written_us))


# Worked example ─────────────────────────────────────────────────────────────────────────────────────────────────────
#                 event time 1    2    3    4    5    6    7    8    9    10   11   12   of the rows, in the order read
# temperature (delay 2 s)    1    2                   4th            3rd            5th
# vibration   (delay 0 s)              1    2                   4th       3rd
# released at                1    2    3    4              7         9    10,10     12   late rows behind it

TEMPERATURE = [(1, b"m1"), (2, b"m2"), (9, b"m3"), (6, b"m4"), (12, b"m5")]
VIBRATION = [(3, b"m2"), (4, b"m1"), (10, b"m3"), (8, b"m4")]


def worked_example() -> tuple[Sequencer, Partition, Partition]:
    streams = (
        Stream(name="temperature", attributes=(Attribute(name="temperature", hi=100.0),), max_delay_us=2 * S),
        Stream(name="vibration", attributes=(Attribute(name="vibration", hi=10.0),)),
    )
    factory = Group(name="factory", streams=streams, retention_us=60 * S)
    shard = Sequencer(factory, 1, 0, {(0, 0): 0, (1, 0): 0}, CAP)
    return shard, Partition(0, 0, 2 * S), Partition(1, 0, 0)


def read_example(shard: Sequencer, partition: Partition, rows: list[tuple[int, bytes]]) -> None:
    for second, machine in rows:
        partition.read(second * S, machine)
    shard.offer(make_batch([partition.section(partition.cursor - len(rows), partition.cursor)]))


def released(shard: Sequencer, until_s: int) -> list[tuple[int, int, int, bytes]]:
    rows = listed(shard.take(until_s * S))
    return [(row.release_us // S, row.stream, row.event_us // S, row.object_id) for row in rows]


def test_the_worked_example_is_evaluated_at_2_once_both_watermarks_are_there() -> None:
    shard, temperature, vibration = worked_example()
    read_example(shard, temperature, TEMPERATURE[:3])
    assert shard.frontier_us == MIN_TIME_US
    read_example(shard, vibration, VIBRATION[:1])
    assert shard.frontier_us == 3 * S
    assert released(shard, 2) == [(1, 0, 1, b"m1")]


def test_the_worked_example_releases_late_rows_at_the_watermark_they_came_behind() -> None:
    shard, temperature, vibration = worked_example()
    read_example(shard, vibration, VIBRATION)
    read_example(shard, temperature, TEMPERATURE)
    assert shard.frontier_us == 10 * S
    assert released(shard, 6) == [(1, 0, 1, b"m1"), (2, 0, 2, b"m2"), (3, 1, 3, b"m2"), (4, 1, 4, b"m1")]
    assert released(shard, 8) == [(7, 0, 6, b"m4")]
    assert released(shard, 10) == [(9, 0, 9, b"m3")]
    assert shard.pending_rows == 3
    for partition in (temperature, vibration):
        read(shard, partition, watermark_us=MAX_TIME_US)
    assert (shard.settled_us, shard.frontier_us) == (12 * S, 13 * S)
    assert released(shard, 14) == [(10, 1, 10, b"m3"), (10, 1, 8, b"m4"), (12, 0, 12, b"m5")]


def test_the_worked_example_is_the_same_however_its_rows_are_cut_into_batches() -> None:
    answers = set()
    for cut in range(6):
        for other in range(5):
            shard, temperature, vibration = worked_example()
            read_example(shard, temperature, TEMPERATURE[:cut])
            read_example(shard, vibration, VIBRATION[:other])
            first = released(shard, shard.frontier_us // S) if shard.frontier_us > 0 else []
            read_example(shard, temperature, TEMPERATURE[cut:])
            read_example(shard, vibration, VIBRATION[other:])
            answers.add((shard.frontier_us, *first, *released(shard, 100)))
    assert len(answers) == 1


# Coverage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_gap_stops_the_shard_and_says_what_to_do() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, a, 10, 20)
    a.read(30)
    b.read(5)
    lost = make_batch([b.section(0, 1), a.section(2, 3)])
    a.read(40)
    with pytest.raises(CoverageGapError) as gap:
        shard.offer(make_batch([b.section(0, 1), a.section(3, 4)]))
    assert str(gap.value) == (
        "stream 's0' partition 0: offsets [2, 3) are missing from the aligned log of group 'factory' (generation 1, "
        "shard 0), so the shard stops; if the loss is acceptable, begin a new generation with `skyband groups "
        "regenerate factory`"
    )
    assert (gap.value.stream, gap.value.partition, gap.value.expected, gap.value.found) == ("s0", 0, 2, 3)
    assert shard.stopped is gap.value
    with pytest.raises(CoverageGapError) as again:
        shard.offer(lost)
    assert again.value is gap.value
    assert shard.statistics().next_offsets == {("catalog", 0): 0, ("s0", 0): 2, ("s1", 0): 0}
    assert shard.pending_rows == 2


def test_a_gap_in_the_catalog_is_a_gap() -> None:
    shard, _ = sequencer(0)
    catalog = Partition(-1, 0, 0)
    with pytest.raises(CoverageGapError, match=r"stream 'catalog' partition 0: offsets \[0, 2\) are missing"):
        shard.offer(make_batch([catalog.section(2, 3)]))


def test_a_section_that_overlaps_what_is_covered_brings_only_its_new_rows() -> None:
    shard, (a,) = sequencer(0)
    read(shard, a, 10, 20, 30)
    a.read(40)
    shard.offer(make_batch([a.section(1, 4)]))
    statistics = shard.statistics()
    assert (statistics.rows, statistics.repeats, statistics.pending_rows) == (4, 2, 4)
    assert [row.offset for row in listed(shard.take(100))] == [0, 1, 2, 3]


def test_an_old_section_of_a_zombie_changes_neither_time_nor_lease() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, a, 10)
    read(shard, b, 10)
    a_old = make_batch([a.section(0, 1, watermark_us=500, newest_us=900, idle_until_us=10_000)], written_us=5)
    read(shard, a, 20)
    shard.offer(a_old)
    assert (shard.frontier_us, shard.newest_us, shard.pending_rows) == (10, 20, 3)
    read(shard, b, 30)
    assert shard.frontier_us == 20


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ({"shard": 1}, r"\('factory', 1, 1\)"),
        ({"generation": 2}, r"\('factory', 2, 0\)"),
        ({"group": "mill"}, "'mill'"),
    ],
)
def test_a_batch_of_another_log_is_refused(address: dict[str, int | str], words: str) -> None:
    shard, (a,) = sequencer(0)
    a.read(5)
    with pytest.raises(LogError, match=words):
        shard.offer(make_batch([a.section(0, 1)], **address))
    shard.offer(make_batch([a.section(0, 1)]))
    assert shard.pending_rows == 1


def test_an_unknown_partition_is_refused_by_name_until_it_is_added() -> None:
    shard, _ = sequencer(0)
    unknown = Partition(0, 7, 0)
    unknown.read(5)
    batch = make_batch([unknown.section(0, 1)])
    with pytest.raises(LogError, match="covers partition 7 of stream 's0', which generation 1 does not read"):
        shard.offer(batch)
    shard.add_partition((0, 7), 0)
    shard.offer(batch)
    assert shard.pending_rows == 1
    with pytest.raises(LogError, match="partition 7 of stream 's0' is read already"):
        shard.add_partition((0, 7), 0)
    with pytest.raises(LogError, match="streams 0 to 0, so a source partition of stream 4 cannot be read"):
        shard.add_partition((4, 0), 0)
    with pytest.raises(LogError, match="the catalog is read already"):
        shard.add_partition((-1, 0), 0)


@pytest.mark.parametrize("changes", [{"rows": 2}, {"rows": -1}, {"to_offset": -1}])
def test_a_damaged_batch_is_refused(changes: dict[str, int]) -> None:
    shard, (a,) = sequencer(0)
    a.read(5)
    with pytest.raises(LogError, match="begin a new generation"):
        shard.offer(make_batch([a.section(0, 1, **changes)]))
    assert shard.stopped is None


# Idle ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_idle_partition_counts_as_the_newest_event_time_less_its_delay() -> None:
    shard, (a, b) = sequencer(0, 30)
    read(shard, a, 100, written_us=1)
    read(shard, b, 40, written_us=1)
    assert shard.frontier_us == 10
    read(shard, b, written_us=2, idle_until_us=50)
    assert shard.frontier_us == 70
    read(shard, a, 200, written_us=50)  # the lease has run out: b holds again, and nothing goes back
    assert shard.frontier_us == 70
    holder = shard.holder()
    assert holder is not None
    assert (holder.stream, holder.watermark_us, holder.is_idle) == ("s1", 10, False)
    read(shard, b, written_us=51, idle_until_us=90)
    assert shard.frontier_us == 170


def test_a_stream_that_holds_when_idle_takes_no_lease() -> None:
    shard, (a, b) = sequencer(0, 0, holds=True)
    read(shard, a, 100)
    read(shard, b, 40)
    read(shard, b, written_us=2, idle_until_us=50)
    assert shard.frontier_us == 40


def test_rows_that_the_frontier_overtook_count_from_it() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, a, 100)
    read(shard, b, written_us=1, idle_until_us=50)
    assert shard.frontier_us == 100
    read(shard, b, 60, 120, written_us=2)
    rows = [(row.event_us, row.stream, row.release_us) for row in listed(shard.take(1_000))]
    assert rows == [(100, 0, 100), (60, 1, 100), (120, 1, 120)]
    assert shard.statistics().overtaken == 1


def test_when_all_are_idle_what_is_known_is_settled_and_shown() -> None:
    shard, (a, b) = sequencer(50, 70)
    read(shard, a, 104)
    read(shard, b, 95)
    assert shard.settled_us == MIN_TIME_US
    read(shard, a, written_us=1, idle_until_us=50)
    read(shard, b, written_us=1, idle_until_us=50)
    assert (shard.settled_us, shard.frontier_us) == (104, 110)
    assert shard.holder() is None
    assert shard.take(shard.frontier_us).rows == 2


def test_a_pane_boundary_at_the_newest_row_is_not_above_it() -> None:
    shard, (a,) = sequencer(50)
    read(shard, a, 100, -7)
    read(shard, a, written_us=1, idle_until_us=50)
    assert shard.frontier_us == 110


def test_finished_partitions_do_not_hold_the_others() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, a, 10, watermark_us=MAX_TIME_US)
    assert shard.frontier_us == MIN_TIME_US
    read(shard, b, 500)
    assert (shard.frontier_us, shard.settled_us) == (500, MIN_TIME_US)


def test_a_group_that_finished_without_a_row_is_not_settled() -> None:
    shard, (a,) = sequencer(0)
    read(shard, a, watermark_us=MAX_TIME_US)
    assert (shard.frontier_us, shard.settled_us) == (MIN_TIME_US, MIN_TIME_US)
    shard._check()


def test_of_two_leases_for_one_offset_that_written_later_counts() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, a, 100)
    read(shard, b, 20)
    older = make_batch([b.section(1, 1, idle_until_us=60)], written_us=3)
    read(shard, b, written_us=4, idle_until_us=0)
    shard.offer(older)
    assert shard.frontier_us == 20
    read(shard, b, written_us=5, idle_until_us=60)
    assert shard.frontier_us == 100


def test_the_clock_of_a_slow_writer_does_not_renew_a_lease_that_ran_out() -> None:
    shard, (a, b) = sequencer(0, 0)
    read(shard, b, 20, written_us=1, idle_until_us=50)
    read(shard, a, 100, written_us=60)
    read(shard, a, 200, written_us=40)
    assert shard.frontier_us == 20


def test_an_older_watermark_for_the_same_offset_changes_nothing() -> None:
    shard, (a,) = sequencer(0)
    read(shard, a, 100)
    before = shard.state()
    shard.offer(make_batch([a.section(0, 1, watermark_us=30, newest_us=40)]))
    assert shard.state() == before
    shard.offer(make_batch([a.section(1, 1, watermark_us=130, newest_us=140)]))
    assert (shard.frontier_us, shard.newest_us) == (130, 140)


def test_a_new_partition_joins_at_the_frontier_and_holds_it_there() -> None:
    shard, (a,) = sequencer(0)
    read(shard, a, 100)
    shard.add_partition((0, 1), 40)
    read(shard, a, 200)
    assert shard.frontier_us == 100
    new = Partition(0, 1, 0, start=40)
    read(shard, new, 50, 180)
    assert shard.frontier_us == 180
    assert shard.statistics().overtaken == 1


# Capacity ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_more_than_may_wait_is_refused_with_the_name_of_what_holds_time() -> None:
    shard = Sequencer(group(0, 0), 1, 0, {(0, 0): 0, (1, 0): 0}, max_pending_bytes=300)
    a, b = Partition(0, 0, 0), Partition(1, 0, 0)
    read(shard, b, 7_000_000)
    for time in range(5):
        a.read(time)
    batch = make_batch([a.section(0, 5)])
    needed = shard.pending_bytes + 5 * 60 + len(batch.id_bytes)
    with pytest.raises(CapacityError) as full:
        shard.offer(batch)
    assert str(full.value) == (
        f"shard 0 of group 'factory' would keep {needed} bytes of rows that wait for time, above its cap of 300: "
        "source partition s0/0 (not read yet) holds the frontier; let it catch up, lower max_drift, or raise the cap"
    )
    assert shard.pending_rows == 1
    for time in range(5):
        assert shard.take(MAX_TIME_US).rows == 1
        shard.offer(make_batch([a.section(time, time + 1)]))  # what was refused is not covered
    assert shard.statistics().peak_pending_rows == 1


# State ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_state_of_another_shard_is_not_restored() -> None:
    shard, (a,) = sequencer(0)
    read(shard, a, 10)
    with pytest.raises(LogError, match=r"the checkpoint is of .* \(1, 'factory', 1, 9\)"):
        shard.restore(shard.state() | {"shard": 9})
    assert shard.pending_rows == 1


def test_a_catalog_may_start_behind_its_beginning() -> None:
    shard = Sequencer(group(0), 1, 0, {(0, 0): 0, (-1, 0): 12}, CAP)
    assert shard.statistics().next_offsets == {("catalog", 0): 12, ("s0", 0): 0}


# Compiled and interpreted ───────────────────────────────────────────────────────────────────────────────────────────


def digest() -> str:
    """Return a hash of all columns of a seeded run with every kind of disorder."""
    rng = np.random.default_rng(11)
    shard = Sequencer(group(200, 30, 0, width=2), 1, 0, {(0, 0): 0, (0, 1): 0, (1, 0): 0, (2, 0): 0}, 10**9)
    partitions = [Partition(s, p, d, width=2) for s, p, d in ((0, 0, 200), (0, 1, 200), (1, 0, 30), (2, 0, 0))]
    seen = hashlib.sha256()
    for step in range(60):
        parts = []
        for index, partition in enumerate(partitions):
            low = partition.cursor
            ahead = 900 if index == 3 else 0
            for _ in range(int(rng.integers(0, 40))):
                partition.read(step * 40 + ahead + int(rng.integers(-90, 40)))
            parts.append(partition.section(low, partition.cursor))
        shard.offer(make_batch(parts, step, width=2))
        rows = shard.take(MAX_TIME_US if step == 59 else shard.frontier_us)
        shard._check()
        for name in rows.__slots__:
            seen.update(np.ascontiguousarray(getattr(rows, name)).tobytes())
    return seen.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_bits() -> None:
    code = "import tests.coverage.test_sequencer as t; print(t.digest())"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "error::RuntimeWarning"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()
