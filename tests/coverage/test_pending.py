"""Pending rows come out as if they were sorted one by one, and their memory stays bounded."""

import numpy as np
import pytest

from skyband.coverage.pending import MIN_ROWS, SHRINK_AFTER, PendingRows, Span
from skyband.coverage.pending_runs import FAN_IN
from skyband.errors import LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from tests.coverage.batches import Partition, Row, listed, make_batch


class Stress:
    """Appends seeded rows of several sources, and keeps them in a list too."""

    def __init__(self, sources: int, seed: int, width: int = 1, delay_us: int = 1_000_000) -> None:
        self.rng = np.random.default_rng(seed)
        self.width = width
        self.pending = PendingRows(width)
        self.partitions = [Partition(i % 3, i // 3, delay_us, width=width) for i in range(sources)]
        for partition in self.partitions:
            self.pending.add_source(partition.stream, partition.partition)
        self.order = sorted(range(sources), key=lambda i: (i % 3, i // 3))
        self.kept: list[Row] = []

    def append(self, n: int, times_us: np.ndarray, floor_us: int = MIN_TIME_US, chosen: tuple[int, ...] = ()) -> None:
        """Append n rows in all; `times_us` are event times, dealt out to the sources."""
        parts, spans, at = [], [], 0
        owners = self.rng.choice(chosen or self.order, n)
        for source in self.order:
            low = self.partitions[source].cursor
            for time in times_us[owners == source].tolist():
                self.partitions[source].read(time)
            parts.append(self.partitions[source].section(low, self.partitions[source].cursor))
            spans.append(Span(source, at, at + len(parts[-1][1])))
            at = spans[-1].hi
        batch = make_batch(parts, width=self.width)
        rows = [row for _, section_rows in parts for row in section_rows]
        expected = [row for row in rows if row.release_us < floor_us]
        size = self.pending.needed_bytes(batch, spans)
        before = self.pending.bytes
        assert self.pending.append(batch, spans, floor_us) == len(expected)
        assert self.pending.bytes == before + size
        self.kept += [row._replace(release_us=max(row.release_us, floor_us)) for row in rows]

    def take(self, until_us: int) -> int:
        due = sorted(row for row in self.kept if row.release_us < until_us)
        self.kept = [row for row in self.kept if row.release_us >= until_us]
        assert listed(self.pending.take(until_us)) == due
        return len(due)

    @property
    def capacity(self) -> int:
        return self.pending._columns.capacity


@pytest.mark.parametrize(
    ("sources", "spread_us", "width"), [(1, 0, 1), (1, 50, 2), (5, 50, 1), (8, 2_000, 3), (40, 9, 1)]
)
def test_rows_come_out_in_total_order_whatever_was_appended_and_taken(sources: int, spread_us: int, width: int) -> None:
    stress = Stress(sources, seed=sources + spread_us, width=width)
    for step in range(120):
        n = int(stress.rng.choice([0, 1, 5, 60, 200]))
        times = step * 100 + np.sort(stress.rng.integers(0, 100, n)) - stress.rng.integers(0, spread_us + 1, n)
        stress.append(n, times)
        stress.pending._check()
        if step % 3:
            stress.take(step * 100 - int(stress.rng.integers(0, 2 * spread_us + 1)))
            stress.pending._check()
    assert stress.take(MAX_TIME_US) > 0
    assert stress.pending.rows == stress.pending.bytes == 0
    stress.pending._check()


def test_rows_far_ahead_wait_in_few_runs_while_others_pass() -> None:
    stress = Stress(sources=2, seed=3)
    for step in range(5 * FAN_IN**2):
        stress.append(2, np.array([step, step]), chosen=(0,))
        stress.append(1, np.array([1_000_000 + step]), chosen=(1,))
        assert stress.take(step + 1) == 2
    stress.pending._check()
    assert stress.pending._run_count < 3 * FAN_IN
    assert stress.pending.rows == 5 * FAN_IN**2
    stress.take(MAX_TIME_US)


def test_columns_do_not_grow_while_as_many_rows_are_taken_as_come() -> None:
    stress = Stress(sources=4, seed=4)
    capacities = set()
    for step in range(300):
        stress.append(400, step * 100 + stress.rng.integers(0, 300, 400))
        stress.take(step * 100)
        capacities.add(stress.capacity)
    assert stress.pending.peak_rows < 2_500
    assert max(capacities) <= 4 * stress.pending.peak_rows


def test_one_row_that_waits_long_does_not_keep_the_garbage_behind_it() -> None:
    stress = Stress(sources=2, seed=5)
    stress.append(1, np.array([10**9]), chosen=(0,))
    for step in range(100):
        stress.append(300, np.full(300, step), chosen=(1,))
        stress.take(step + 1)
    stress.pending._check()
    assert stress.pending.rows == 1
    assert stress.capacity <= 4 * 301


def test_memory_of_a_backlog_is_given_back() -> None:
    stress = Stress(sources=1, seed=6)
    stress.append(8_000, np.arange(8_000))
    stress.take(MAX_TIME_US)
    assert stress.capacity >= 8_000
    for step in range(6 * SHRINK_AFTER):
        stress.append(2, np.array([30_000 + step] * 2))
        stress.take(30_000 + step)
    stress.pending._check()
    assert stress.capacity <= 2 * MIN_ROWS
    stress.take(MAX_TIME_US)


def test_rows_below_the_floor_take_it_as_their_release_time() -> None:
    stress = Stress(sources=2, seed=7)
    stress.append(50, stress.rng.integers(0, 100, 50), floor_us=60)
    assert stress.pending.next_release_us == 60
    assert stress.take(61) > 20
    stress.take(MAX_TIME_US)


def test_long_and_short_ids_keep_their_bytes() -> None:
    names = [b"", b"a", b"1234567", b"12345678", b"123456789", bytes(range(256)) * 300]
    partitions = [Partition(0, 0, 0), Partition(1, 0, 0)]
    pending = PendingRows(1)
    expected: list[Row] = []
    for partition in partitions:
        pending.add_source(partition.stream, 0)
    for step in range(60):
        parts = []
        for partition in partitions:
            low = partition.cursor
            for i, name in enumerate(names):
                partition.read(100 * step + i * 10, name)
            parts.append(partition.section(low, partition.cursor))
        pending.append(make_batch(parts), [Span(0, 0, 6), Span(1, 6, 12)], MIN_TIME_US)
        expected += [row for _, rows in parts for row in rows]
        until = 100 * step - 70
        assert listed(pending.take(until)) == sorted(row for row in expected if row.release_us < until)
        expected = [row for row in expected if row.release_us >= until]
        pending._check()


def test_ids_shorter_than_the_garbage_before_them_keep_their_bytes() -> None:
    partition = Partition(0, 0, 10**9)
    pending = PendingRows(1)
    pending.add_source(0, 0)
    waiting: list[Row] = []

    def append(n: int, time: int) -> None:
        low = partition.cursor
        for _ in range(n):
            partition.read(time, bytes([partition.cursor % 251]))
        batch = make_batch([partition.section(low, partition.cursor)])
        pending.append(batch, [Span(0, 0, n)], MIN_TIME_US)
        waiting.extend(partition.rows[low:])

    append(1, 100)
    append(3, 1)
    append(300, 100)
    columns = pending._columns
    for time in range(2, 60):  # the first row stays: there is nothing to slide, and half of the columns are garbage
        assert listed(pending.take(time)) == [row for row in waiting if row.release_us < time]
        waiting = [row for row in waiting if row.release_us >= time]
        append(50, time)
    pending._check()
    assert pending._columns is columns
    assert pending._columns.id_ends[pending._tail] < 1024
    assert listed(pending.take(200)) == sorted(waiting)


def test_spans_may_leave_out_rows_and_change_places() -> None:
    partition, other = Partition(0, 0, 0), Partition(1, 0, 0)
    for time in range(10):
        partition.read(time)
        other.read(time)
    batch = make_batch([other.section(0, 10), partition.section(0, 10)])
    pending = PendingRows(1)
    pending.add_source(1, 0)
    pending.add_source(0, 0)
    pending.append(batch, [Span(1, 14, 20), Span(0, 3, 10)], MIN_TIME_US)
    pending._check()
    assert listed(pending.take(100)) == sorted(partition.rows[4:] + other.rows[3:])


def test_a_release_time_outside_the_time_line_is_refused_and_nothing_kept() -> None:
    partition = Partition(0, 0, 0)
    partition.read(5)
    partition.read(MAX_TIME_US)
    pending = PendingRows(1)
    pending.add_source(0, 0)
    with pytest.raises(LogError, match="'align-0' has release time 4611686018427387904"):
        pending.append(make_batch([partition.section(0, 2)]), [Span(0, 0, 2)], MIN_TIME_US)
    assert pending.rows == 0
    pending._check()
