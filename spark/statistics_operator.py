"""Sketches as Spark runs them while an aligned topic grows: records in, publications out, standings in the state store.

Before the first micro-batch Spark starts a process only to ask which state the operator has. What sketches is therefore
imported where it is used, and the plan unpickled there: it takes two CPU seconds.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SKETCHED_SCHEMA", "SketchOperator"]

SKETCHED_SCHEMA = "shard int, publication binary, rows long, repeats long"


class SketchOperator(StatefulProcessor):
    """Sketches one shard: records of its aligned log in, what it publishes out.

    `plan` is a pickled StatisticsPlan, `begins` the first offset of each shard's log.
    """

    def __init__(self, plan: bytes, begins: Mapping[int, int]) -> None:
        self._plan, self._begins = plan, dict(begins)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See StatefulProcessor."""
        self._standing = handle.getValueState("standing", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """See StatefulProcessor."""
        import pandas as pd

        from spark.statistics_shards import go_on

        number = int(key[0])
        found = pd.concat(list(rows), ignore_index=True).sort_values("offset", kind="stable")
        records = (
            (int(offset), None if value is None else bytes(value))
            for offset, value in zip(found["offset"], found["value"], strict=True)
        )
        kept = self._standing.get()
        standing = None if kept is None else bytes(kept[0])
        step = go_on(pickle.loads(self._plan), number, standing, self._begins[number], records)
        self._standing.update((step.standing,))
        yield pd.DataFrame(
            {
                "shard": pd.array([number], "int32"),
                "publication": pd.Series([step.publication], dtype=object),
                "rows": [step.rows],
                "repeats": [step.repeats],
            }
        )

    def close(self) -> None:
        """See StatefulProcessor."""
