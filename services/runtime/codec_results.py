"""Results and dead letters, which others read too, as Avro records; see schemas/result.avsc, dead_letter.avsc."""

from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.model.result import Candidate, Result, ResultRow
from skyband.model.source_rows import DeadLetter, Reason

__all__ = ["DEAD_LETTER", "RESULT"]

_CANDIDATE = plain(Candidate)
_REASONS = {reason.label: reason for reason in Reason}


def _write_result(result: Result) -> AvroRecord:
    return {
        "query": result.query,
        "uid": result.uid,
        "revision": result.revision,
        "window_start": result.window_start,
        "window_end": result.window_end,
        "rows": [
            {
                "rank": row.rank,
                "object_id": row.object_id,
                "score": row.score,
                "attributes": row.attributes,
                "event_time": row.event_time_us,
                "best_score": row.best_score,
                "safe_until": row.safe_until,
            }
            for row in result.rows
        ],
        "frontier_us": result.frontier_us,
        "candidates": [_CANDIDATE.write(candidate) for candidate in result.candidates],
    }


def _read_result(record: AvroRecord) -> Result:
    rows = tuple(
        [
            ResultRow(
                row["rank"],
                row["object_id"],
                row["score"],
                row["attributes"],
                row["event_time"],
                row["best_score"],
                row["safe_until"],
            )
            for row in record["rows"]
        ]
    )
    return Result(
        query=record["query"],
        uid=record["uid"],
        window_start=record["window_start"],
        window_end=record["window_end"],
        rows=rows,
        frontier_us=record["frontier_us"],
        revision=record["revision"],
        candidates=tuple(
            [Candidate(**{**candidate, "lacks": tuple(candidate["lacks"])}) for candidate in record["candidates"]]
        ),
    )


def _write_letter(letter: DeadLetter) -> AvroRecord:
    return {
        "stream": letter.stream,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "reason": letter.reason.label,
        # A text that quotes a broken record may hold what UTF-8 has no bytes for; the letter must not fail over it.
        "error": letter.error.encode("utf-8", "replace").decode(),
        "raw": letter.raw,
    }


def _read_letter(record: AvroRecord) -> DeadLetter:
    return DeadLetter(
        stream=record["stream"],
        topic=record["topic"],
        partition=record["partition"],
        offset=record["offset"],
        reason=_REASONS[record["reason"]],
        error=record["error"],
        raw=record["raw"],
    )


RESULT = (ValueCodec("Result", Result, _write_result, _read_result),)
DEAD_LETTER = (ValueCodec("DeadLetter", DeadLetter, _write_letter, _read_letter),)
