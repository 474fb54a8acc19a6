"""What shards tell the merge, as Avro records; see schemas/partial.avsc."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from services.runtime.codec_columns import column_bytes, read_column
from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.model.partials import Activated, Contender, Evaluation, PartialBatch, Progress

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
        "best_scores": column_bytes(batch.best, np.float64),
        "contenders": [
            {
                "ranking": place,
                "object_id": contender.object_id,
                "score": contender.score,
                "best_score": contender.best_score,
                "lacks": contender.lacks,
                "until": contender.until,
            }
            for place, evaluation in enumerate(batch.evaluations)
            for contender in evaluation.contenders
        ],
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
        evaluations=_read_evaluations(record["uids"], evaluations.tolist(), record["contenders"]),
        ranking=read_column(record["ranking"], np.int32),
        id_bytes=read_column(record["id_bytes"], np.uint8),
        id_ends=read_column(record["id_ends"], np.int64),
        score=score,
        event_time_us=read_column(record["event_times_us"], np.int64),
        sequence=read_column(record["sequences"], np.int64) if record["sequences"] else np.zeros(rows, np.int64),
        attributes=read_column(record["attributes"], np.float64).reshape(cells),
        present=_read_present(record["present"], cells),
        # Of a record without it comes the default, which is text.
        best=read_column(record["best_scores"] or b"", np.float64),
    )
    _check(batch, evaluations)
    return batch


def _read_evaluations(uids: list[str], numbers: list[Any], contenders: list[dict[str, Any]]) -> tuple[Evaluation, ...]:
    if not contenders:
        return tuple([Evaluation(uid, *own) for uid, own in zip(uids, numbers, strict=True)])
    by_place: dict[int, list[Contender]] = {}
    for found in contenders:
        by_place.setdefault(found["ranking"], []).append(_read_contender(found))
    if not by_place.keys() <= set(range(len(uids))):
        raise ValueError(f"a contender belongs to a ranking that is not one of {len(uids)}")
    return tuple(
        replace(Evaluation(uid, *own), contenders=tuple(by_place.get(place, ())))
        for place, (uid, own) in enumerate(zip(uids, numbers, strict=True))
    )


def _read_contender(record: dict[str, Any]) -> Contender:
    return Contender(
        object_id=record["object_id"],
        score=record["score"],
        best_score=record["best_score"],
        lacks=tuple(record["lacks"]),
        until=record["until"],
    )


def _read_present(data: bytes, cells: tuple[int, int]) -> npt.NDArray[np.bool_]:
    if not data:
        return np.ones(cells, np.bool_)
    return np.not_equal(read_column(data, np.uint8), 0).reshape(cells)


def _check(batch: PartialBatch, evaluations: npt.NDArray[np.int64]) -> None:
    """Raise ValueError unless every index of the batch points into it."""
    rows = len(batch.score)
    lengths = {len(batch.id_ends), len(batch.sequence), len(batch.event_time_us) or rows, len(batch.best) or rows}
    ends = np.concatenate([np.zeros(1, np.int64), batch.id_ends])
    if lengths != {rows} or ends[-1] != len(batch.id_bytes) or np.any(ends[1:] < ends[:-1]):
        raise ValueError(f"the columns of {rows} rows do not fit each other")
    if len(batch.ranking) and not 0 <= batch.ranking.min() <= batch.ranking.max() < rows:
        raise ValueError(f"a ranking names a row that is not one of {rows}")
    starts, stops = evaluations[:, _START], evaluations[:, _STOP]
    if np.any(starts < 0) or np.any(stops < starts) or np.any(stops > len(batch.ranking)):
        raise ValueError("an evaluation lies outside the ranking")
    named = [place for e in batch.evaluations for contender in e.contenders for place in contender.lacks]
    if named and not 0 <= min(named) <= max(named) < len(batch.attribute_names):
        raise ValueError(f"a contender lacks an attribute that is not one of {len(batch.attribute_names)}")


PARTIAL = (ValueCodec("PartialBatch", PartialBatch, _write, _read), plain(Progress), plain(Activated))
