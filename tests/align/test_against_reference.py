"""The pure core of align against a row-at-a-time reference, for any chunks, flushes and shards."""

import hashlib
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyband.align.aligner import Aligner
from skyband.align.source import SourceStart
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US, MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.source_rows import Reason
from skyband.model.stream import Late
from skyband.structures.hashing import shards_of
from tests.align.factory import KEY, OBJECTS, add, group, stream
from tests.align.reference import Reference, Row, rows_of, sections, source_rows

VALUES = st.sampled_from([math.nan, math.inf, -6.0, -5.0, -0.0, 0.0, 1.5, 5.0, 7.5])
GIVEN = st.sampled_from([Reason.ACCEPTED] * 9 + [Reason.UNDECODABLE, Reason.BAD_TIME])
TIMES = st.one_of(
    st.integers(-3, 40), st.sampled_from([MIN_TIME_US, MAX_TIME_US, FIRST_EVENT_US, LAST_EVENT_US, 2**63 - 1, -(2**63)])
)


@st.composite
def partitions(draw: st.DrawFn, width: int) -> list[Row]:
    """Draw the records of one source partition, with offsets that skip some."""
    rows, offset = [], -1
    for _ in range(draw(st.integers(0, 25))):
        offset += draw(st.sampled_from([1, 1, 1, 3]))
        values = tuple(draw(VALUES) for _ in range(width))
        who = draw(st.sampled_from([b"", b"a", b"bb", b"object-17", b"a much longer object id"]))
        rows.append(Row(offset, draw(TIMES), who, values, draw(GIVEN), draw(st.sampled_from([-1, 0, 10, 40]))))
    return rows


@st.composite
def chunked(draw: st.DrawFn, rows: Sequence[Row]) -> list[tuple[int, int, list[Row]]]:
    """Cut the offsets of a source partition into chunks, some without rows, some beginning with a repeat."""
    end = rows[-1].offset + 1 if rows else 0
    cuts = sorted({0, end, *draw(st.lists(st.integers(0, end), max_size=5))})
    chunks = []
    for begin, stop in pairwise(cuts):
        begin = max(0, begin - draw(st.sampled_from([0, 0, 0, 2])))
        chunks.append((begin, stop, [row for row in rows if begin <= row.offset < stop]))
    return chunks


@st.composite
def runs(
    draw: st.DrawFn, its_group: Group, inputs: dict[tuple[int, int], list[Row]], shards: int
) -> list[AlignedBatch]:
    """Align `inputs` in some interleaving of some chunks, with some flushes; return all batches."""
    max_rows = draw(st.sampled_from([1, 2, 7, 100]))
    its = Aligner(its_group, 1, shards, {key: SourceStart() for key in inputs}, max_rows=max_rows)
    queues = {key: draw(chunked(rows)) for key, rows in inputs.items()}
    batches: list[AlignedBatch] = []
    while any(queues.values()):
        key = draw(st.sampled_from(sorted(key for key, queue in queues.items() if queue)))
        begin, stop, rows = queues[key].pop(0)
        its.add(*key, begin, stop, source_rows(rows))
        if draw(st.integers(0, 3)) == 0:
            batches += its.flush(len(batches))
    batches += its.flush(len(batches))
    assert its.flush(0) == []
    assert all(batch.rows <= max_rows for batch in batches)
    return batches


GROUPS = [
    group(stream(max_delay_us=4, max_ahead_us=9), OBJECTS),
    group(stream(late=Late.DROP), stream("vibration", max_delay_us=2)),
]


@given(data=st.data(), its_group=st.sampled_from(GROUPS), shards=st.sampled_from([1, 2, 5]))
def test_any_chunks_flushes_and_shards_give_the_rows_times_and_coverage_of_the_reference(
    data: st.DataObject, its_group: Group, shards: int
) -> None:
    keys = [(0, 0), (0, 1), (1, 0)]
    inputs = {key: data.draw(partitions(len(its_group.streams[key[0]].attributes))) for key in keys}
    batches = data.draw(runs(its_group, inputs, shards))
    for key, rows in inputs.items():
        its_stream = its_group.streams[key[0]]
        expected = Reference(its_stream)
        after = {0: (MIN_TIME_US, MIN_TIME_US)}
        for row in rows:
            after[row.offset] = (expected.watermark_us, expected.newest_us)
            expected.add(row)
            after[row.offset + 1] = (expected.watermark_us, expected.newest_us)
        for shard in range(shards):
            found = rows_of(batches, shard, key, len(its_stream.attributes))
            assert found == [row for row in expected.accepted if shard_of(row.object_id, shards) == shard]
            cursor = 0
            for section in sections(batches, shard, key):
                assert section.from_offset == cursor < section.to_offset
                cursor = section.to_offset
                read = max(offset for offset in after if offset <= cursor)
                assert (section.watermark_us, section.newest_us) == after[read]
                assert section.idle_until_us == 0
            assert cursor == (rows[-1].offset + 1 if rows else 0)


@given(data=st.data(), its_group=st.sampled_from(GROUPS))
def test_counts_and_dead_letters_name_the_reasons_of_the_reference(data: st.DataObject, its_group: Group) -> None:
    its_stream = its_group.streams[0]
    rows = data.draw(partitions(len(its_stream.attributes)))
    expected = Reference(its_stream)
    its = Aligner(its_group, 1, 3, {KEY: SourceStart()}, max_rows=data.draw(st.sampled_from([1, 4, 50])))
    for row in rows:
        expected.add(row)
    for begin, stop, chunk in data.draw(chunked(rows)):
        its.add(*KEY, begin, stop, source_rows(chunk))
    letters = [(letter.offset, letter.reason) for letter in its.drain_dead_letters()]
    assert letters == [(r.offset, why) for r, why in zip(rows, expected.reasons, strict=True) if why]
    counts = its.counts()[0]
    assert (counts.accepted, counts.late) == (len(expected.accepted), expected.late)
    assert dict(counts.rejected) == {r: expected.reasons.count(r) for r in Reason if r and r in expected.reasons}
    assert counts.records == len(rows)


def shard_of(object_id: bytes, shards: int) -> int:
    """Return the shard of one id."""
    arena = np.frombuffer(bytearray(object_id), np.uint8)
    return int(shards_of(arena, np.array([len(object_id)], np.int64), shards)[0])


def digest() -> str:
    """Return a digest of all that an aligner makes of seeded rows."""
    draw = random.Random(7)
    its = Aligner(GROUPS[0], 1, 3, {(0, 0): SourceStart(), (1, 0): SourceStart()}, max_rows=40)
    state = hashlib.sha256()
    for turn in range(12):
        for key, width in (((0, 0), 1), ((1, 0), 2)):
            rows = [_random_row(draw, offset, width) for offset in range(turn * 30, turn * 30 + 30)]
            add(its, rows, key)
        for batch in its.flush(turn):
            state.update(repr(batch.sections).encode())
            for column in _columns(batch):
                state.update(np.ascontiguousarray(column).tobytes())
    state.update(repr([(letter.offset, letter.reason) for letter in its.drain_dead_letters()]).encode())
    return state.hexdigest()


def _random_row(draw: random.Random, offset: int, width: int) -> Row:
    values = tuple(draw.choice([draw.uniform(-9, 9), draw.uniform(0, 5), -0.0, math.nan]) for _ in range(width))
    time_us = draw.choice([offset + draw.randrange(9), offset, 2**63 - 1 if draw.random() < 0.1 else offset])
    return Row(offset, time_us, draw.randbytes(draw.randrange(40)), values, timestamp_us=offset + draw.randrange(-2, 9))


def _columns(batch: AlignedBatch) -> Iterator[np.ndarray]:
    yield from (batch.offset, batch.event_time_us, batch.release_time_us, batch.id_bytes)
    yield from (batch.id_ends, batch.id_hash, batch.values)


def test_interpreted_kernels_give_the_same_bits() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "from tests.align import test_against_reference as t; print(t.digest())",
    ]
    interpreted = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert interpreted.stdout.strip() == digest()
