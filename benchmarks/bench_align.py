"""How fast align's pure part is: decoded columns in, aligned batches out, one core."""

import json
import statistics
import time
from collections.abc import Sequence

import numpy as np

from skyband.align.aligner import Aligner
from skyband.align.source import SourceStart
from skyband.model.group import Group
from skyband.model.source_rows import SourceRows
from skyband.model.stream import Attribute, Stream

__all__ = ["run"]

BATCH_ROWS = 10_000
REPEATS = 5


def run(rows: int) -> dict[str, float]:
    """Return rows per second, median of five runs, for 1 and 4 shards; ids of 8 bytes, batches of 10,000 rows."""
    chunks = _chunks(rows)
    figures: dict[str, float] = {}
    for shards in (1, 4):
        _align(chunks[:1], shards)
        seconds = [_align(chunks, shards) for _ in range(REPEATS)]
        figures[f"rows_per_second_{shards}_shards"] = round(rows / statistics.median(seconds))
        figures[f"rows_per_second_{shards}_shards_min"] = round(rows / max(seconds))
        figures[f"rows_per_second_{shards}_shards_max"] = round(rows / min(seconds))
    return figures


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
    begin = time.perf_counter()
    taken = 0
    for chunk in chunks:
        aligner.add(0, 0, int(chunk.offset[0]), int(chunk.offset[-1]) + 1, chunk)
        taken += sum(batch.rows for batch in aligner.flush(0))
    seconds = time.perf_counter() - begin
    assert taken == sum(chunk.rows for chunk in chunks)
    return seconds


if __name__ == "__main__":
    print(json.dumps(run(1_000_000), indent=2))
