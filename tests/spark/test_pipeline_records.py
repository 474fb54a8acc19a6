"""Records that are packed for align come out as they went in, whatever pieces they come in."""

import numpy as np
import pyarrow as pa

from spark.pipeline_records import pack_records, unpack_records

STREAMS = {"t0": [0], "t1": [1, 2]}
VALUES = [b"a", None, b"", b"longer", b"\xff"]


def frame(topic: str, partition: int, offsets: list[int], values: list[bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic] * len(offsets), pa.string()),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "time_us": pa.array([7 * offset for offset in offsets], pa.int64()),
            "value": pa.array(values, pa.binary()),
        }
    )


def rows(frames: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for packed in pack_records(STREAMS, frames) for row in packed.to_pylist()]


def test_pieces_in_any_order_are_the_records_in_order_of_offsets() -> None:
    packed = rows([frame("t0", 1, [3, 4], VALUES[:2]), frame("t0", 1, [7, 8, 12], VALUES[2:])])
    assert [row["first"] for row in packed] == [3, 7]
    found = unpack_records(row["data"] for row in reversed(packed))  # type: ignore[misc]
    assert found.offset.tolist() == [3, 4, 7, 8, 12]
    assert found.time_us.tolist() == [21, 28, 49, 56, 84]
    assert list(found.values) == VALUES
    assert found.offset.dtype == found.time_us.dtype == np.int64


def test_a_frame_of_several_partitions_makes_a_row_of_each_and_of_each_stream_of_its_topic() -> None:
    frames = [frame("t0", 0, [1, 2], VALUES[:2]), frame("t0", 1, [1], VALUES[4:]), frame("t1", 1, [9], VALUES[3:4])]
    packed = rows([pa.concat_batches(frames)])
    assert [(row["key"], row["first"]) for row in packed] == [("0/0", 1), ("0/1", 1), ("1/1", 9), ("2/1", 9)]
    # A slice must not bring its neighbours' bytes along.
    for row in packed[2:]:
        assert list(unpack_records([row["data"]]).values) == [b"longer"]  # type: ignore[list-item]


def test_a_frame_without_records_makes_no_row() -> None:
    assert rows([frame("t0", 0, [], [])]) == []
