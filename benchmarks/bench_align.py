"""How fast align's pure part is: decoded columns in, aligned batches out, one core."""

import time
from collections.abc import Sequence

import numpy as np

from skyband.align.aligner import Aligner
from skyband.align.source import SourceStart
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Attribute, Stream

BATCH_ROWS = 10_000


def run(rows: int, shards: int) -> dict[str, float]:
    """Align rows of one partition: ids of 8 bytes, batches of 10,000 rows."""
    seconds = _align(_chunks(rows), shards)
    return {"rows": rows, "seconds": seconds, "rows_per_s": rows / seconds}


def _chunks(rows: int) -> list[SourceRows]:
    """Return seeded chunks of one partition: 50,000 objects, time 1 ms a row with up to 2 s of disorder."""
    draw = np.random.default_rng(1)
    names = np.array([b"%08d" % i for i in range(50_000)])
    chunks = []
    for begin in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - begin)
        offset = np.arange(begin, begin + count, dtype=np.int64)
        chunks.append(
            SourceRows(
                offset=offset,
                event_time_us=offset * 1_000 - draw.integers(0, 2_000_000, count),
                id_bytes=np.frombuffer(bytearray(draw.choice(names, count).tobytes()), np.uint8),
                id_ends=np.arange(8, 8 * count + 1, 8, dtype=np.int64),
                values=draw.uniform(0.0, 100.0, (count, 1)),
                reason=np.zeros(count, np.uint8),
                timestamp_us=offset * 1_000,
            )
        )
    return chunks


def _align(chunks: Sequence[SourceRows], shards: int) -> float:
    """Return the seconds that adding and flushing every chunk takes."""
    stream = Stream(name="temperature", attributes=(Attribute(name="temperature", hi=100.0),), max_delay_us=2_000_000)
    group = Group(name="bench", streams=(stream,), retention_us=60_000_000)
    aligner = Aligner(group, 1, shards, {(0, 0): SourceStart()})
    begin = time.process_time()
    taken = 0
    for chunk in chunks:
        aligner.add(0, 0, int(chunk.offset[0]), int(chunk.offset[-1]) + 1, chunk)
        taken += sum(batch.rows for batch in aligner.flush(0))
    seconds = time.process_time() - begin
    assert taken == sum(chunk.rows for chunk in chunks)
    return seconds


CASES = {
    "align_1_shard": lambda: run(2_000_000, 1),
    "align_4_shards": lambda: run(2_000_000, 4),
}
