"""The parts of the pipeline as Spark runs them: frames in, frames out, the state store as a table.

Before the first micro-batch Spark starts a process for each operator, only to ask which state it has. What runs the
parts is therefore imported where it is used: it takes two CPU seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spark.pipeline_messages import LETTERS, Message
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_records import unpack_records

if TYPE_CHECKING:
    import pandas as pd

    from spark.pipeline_align import SourcePart

__all__ = ["AlignOperator", "MergeOperator", "ShardOperator"]


class _StoredTable:
    """The state of one key in Spark's state store; see `Table`."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("state", "name string", "data binary")

    def get(self, name: str) -> bytes | None:
        found = self._map.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, data: bytes) -> None:
        self._map.updateValue((name,), (data,))

    def remove(self, name: str) -> None:
        self._map.removeKey((name,))

    def names(self) -> list[str]:
        return [key[0] for key in self._map.keys()]  # noqa: SIM118


class _Operator(StatefulProcessor):
    """A processor of which a plan is all that travels to workers."""

    def __init__(self, plan: PipelinePlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See StatefulProcessor."""
        self._handle = handle
        self._table = _StoredTable(handle)

    def close(self) -> None:
        """See StatefulProcessor."""


class AlignOperator(_Operator):
    """Runs a `SourcePart` for each source partition; timers say when a quiet one is to be looked at."""

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:  # noqa: N802, N803
        """See StatefulProcessor."""
        part = self._part(key, timerValues)
        part.begin()
        self._watch(0, part.due_us)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """See StatefulProcessor."""
        part = self._part(key, timerValues)
        due_us = part.due_us
        messages = part.take(unpack_records(bytes(data) for frame in rows for data in frame["data"]))
        self._watch(due_us, part.due_us)
        return _frames(messages)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """See StatefulProcessor."""
        part = self._part(key, timerValues)
        messages = part.look()
        if messages:
            self._watch(0, part.due_us)
        return _frames(messages)

    def _part(self, key: Any, times: Any) -> SourcePart:
        from spark.pipeline_align import SourcePart

        stream, partition = key[0].split("/")
        return SourcePart(self._plan, (int(stream), int(partition)), self._table, _now_us(times))

    def _watch(self, was_us: int, due_us: int) -> None:
        if was_us == due_us:
            return
        if was_us:
            self._handle.deleteTimer(_timer_ms(was_us))
        if due_us:
            self._handle.registerTimer(_timer_ms(due_us))


class ShardOperator(_Operator):
    """Runs a `ShardPart` for each shard."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """See StatefulProcessor."""
        from spark.pipeline_shards import ShardPart

        if key[0] == LETTERS:
            return rows
        return _frames(ShardPart(self._plan, key[0], self._table).take(_messages(rows)))


class MergeOperator(_Operator):
    """Runs the `MergePart` of the group."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """See StatefulProcessor."""
        from spark.pipeline_merge import MergePart

        if key[0] == LETTERS:
            return rows
        return _frames(MergePart(self._plan, key[0], self._table).take(_messages(rows)))


def _now_us(times: Any) -> int:
    """Return when the micro-batch was planned: the same if it is run again."""
    return int(times.getCurrentProcessingTimeInMs()) * 1_000


def _timer_ms(due_us: int) -> int:
    return -(-due_us // 1_000)


def _messages(frames: Iterable[pd.DataFrame]) -> list[Message]:
    return [
        Message(key, bytes(data), time_us, stream, partition, part)
        for frame in frames
        for key, time_us, stream, partition, part, data in frame.itertuples(index=False, name=None)
    ]


def _frames(messages: list[Message]) -> Iterator[pd.DataFrame]:
    """Yield messages as frames of MESSAGE_SCHEMA, each of its own: some are large."""
    import pandas as pd

    for its in messages:
        yield pd.DataFrame(
            {
                "key": [its.key],
                "time_us": [its.time_us],
                "stream": [its.stream],
                "partition": [its.partition],
                "part": [its.part],
                "data": [its.data],
            }
        )
