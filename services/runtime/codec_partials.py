"""What shards tell the merge, as Avro records; see schemas/partial.avsc."""

from operator import attrgetter

import numpy as np
import numpy.typing as npt

from services.runtime.codec_columns import column_bytes, read_column
from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.model.partials import Activated, Evaluation, PartialBatch, Progress

__all__ = ["PARTIAL"]

# What an evaluation has beside its uid travels as a table: a group may have thousands of queries.
_EVALUATION = ("revision", "k", "window_start", "window_end", "start", "stop")
_START, _STOP = _EVALUATION.index("start"), _EVALUATION.index("stop")
_evaluation_numbers = attrgetter(*_EVALUATION)


def _write(batch: PartialBatch) -> AvroRecord:
    return {
        "group": batch.group,
        "generation": batch.generation,
        "shard": batch.shard,
        "descending": batch.descending,
        "attribute_names": batch.attribute_names,
        "uids": [evaluation.uid for evaluation in batch.evaluations],
        "evaluations": column_bytes(np.array([_evaluation_numbers(e) for e in batch.evaluations], np.int64), np.int64),
        "ranking": column_bytes(batch.ranking, np.int32),
        "id_bytes": batch.id_bytes.tobytes(),
        "id_ends": column_bytes(batch.id_ends, np.int64),
        "scores": column_bytes(batch.score, np.float64),
        "event_times_us": column_bytes(batch.event_time_us, np.int64),
        "sequences": column_bytes(batch.sequence, np.int64) if batch.sequence.any() else b"",
        "attributes": column_bytes(batch.attributes, np.float64),
        "present": b"" if batch.present.all() else column_bytes(batch.present, np.uint8),
    }


def _read(record: AvroRecord) -> PartialBatch:
    names = tuple(record["attribute_names"])
    score = read_column(record["scores"], np.float64)
    rows = len(score)
    cells = (rows, len(names))
    evaluations = read_column(record["evaluations"], np.int64).reshape(-1, len(_EVALUATION))
    batch = PartialBatch(
        group=record["group"],
        generation=record["generation"],
        shard=record["shard"],
        descending=record["descending"],
        attribute_names=names,
        evaluations=tuple(
            [Evaluation(uid, *numbers) for uid, numbers in zip(record["uids"], evaluations.tolist(), strict=True)]
        ),
        ranking=read_column(record["ranking"], np.int32),
        id_bytes=read_column(record["id_bytes"], np.uint8),
        id_ends=read_column(record["id_ends"], np.int64),
        score=score,
        event_time_us=read_column(record["event_times_us"], np.int64),
        sequence=read_column(record["sequences"], np.int64) if record["sequences"] else np.zeros(rows, np.int64),
        attributes=read_column(record["attributes"], np.float64).reshape(cells),
        present=_read_present(record["present"], cells),
    )
    _check(batch, evaluations)
    return batch


def _read_present(data: bytes, cells: tuple[int, int]) -> npt.NDArray[np.bool_]:
    if not data:
        return np.ones(cells, np.bool_)
    return np.not_equal(read_column(data, np.uint8), 0).reshape(cells)


def _check(batch: PartialBatch, evaluations: npt.NDArray[np.int64]) -> None:
    """Raise ValueError unless every index of the batch points into it."""
    rows = len(batch.score)
    lengths = {len(batch.id_ends), len(batch.sequence), len(batch.event_time_us) or rows}
    ends = np.concatenate([np.zeros(1, np.int64), batch.id_ends])
    if lengths != {rows} or ends[-1] != len(batch.id_bytes) or np.any(ends[1:] < ends[:-1]):
        raise ValueError(f"the columns of {rows} rows do not fit each other")
    if len(batch.ranking) and not 0 <= batch.ranking.min() <= batch.ranking.max() < rows:
        raise ValueError(f"a ranking names a row that is not one of {rows}")
    starts, stops = evaluations[:, _START], evaluations[:, _STOP]
    if np.any(starts < 0) or np.any(stops < starts) or np.any(stops > len(batch.ranking)):
        raise ValueError("an evaluation lies outside the ranking")


PARTIAL = (ValueCodec("PartialBatch", PartialBatch, _write, _read), plain(Progress), plain(Activated))
