"""How a query is doing, in words: its state, why, and what to do about it.

The first of these that holds is the state:

=====================  =====================================================  =======================
headline               holds when                                             what to do
=====================  =====================================================  =======================
STOPPED                a shard stopped on an error                            mend it, or regenerate
PAUSED                 somebody paused it                                     resume
STARTING               shards have not reported                               wait, or see the engine
no data yet            no row, good or bad, has come                          look at the producers
every record rejected  all went to dead letters                               look at those
waiting                a source partition holds the frontier, and no result   see its reader, or idle
                       has come for some seconds
every row late         all rows came after their watermark                    raise max_delay
first window open      no window has ended yet                                wait
nothing qualifies      windows were evaluated, none had an eligible object    check require and score
IDLE                   nothing holds the frontier, and no row came of late    nothing
up to date             otherwise                                              nothing
=====================  =====================================================  =======================
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from skyband.control.wording import count, instant, lines, plural, size, span
from skyband.model.duration import MIN_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.query import QueryState
from skyband.model.resources import QueryResource
from skyband.model.status import Holder, QueryStatus, ShardStatus
from skyband.model.stream import IdleThen, Late

__all__ = ["Description", "describe"]


# Streams that are not in step hold each other up all the time; while results come, that is nothing to look after.
_FRESH_US = 10_000_000


@dataclass(frozen=True, slots=True)
class Description:
    """A headline, and lines of (label, words)."""

    headline: str
    lines: tuple[tuple[str, str], ...]

    def text(self) -> str:
        """Return it as it is shown."""
        return "\n".join([self.headline, *lines([*self.lines], gap="    ")])


def describe(
    resource: QueryResource, group: Group, status: QueryStatus, now_us: int, zone: tzinfo = UTC
) -> Description:
    """Return how the query of `resource` is doing at `now_us`, with times shown in `zone`."""
    return _Describer(resource, group, status, now_us, zone).describe()


class _Describer:
    """One description in the making: each check returns headline and lines, or None if it does not hold."""

    def __init__(self, resource: QueryResource, group: Group, status: QueryStatus, now_us: int, zone: tzinfo) -> None:
        self._resource = resource
        self._group = group
        self._status = status
        self._now_us = now_us
        self._zone = zone
        self._path = f"{resource.group}/{resource.query.name}"

    def describe(self) -> Description:
        checks = (
            self._stopped,
            self._paused,
            self._starting,
            self._no_data,
            self._all_rejected,
            self._held,
            self._all_late,
            self._first_window_open,
            self._nothing_qualifies,
            self._idle,
        )
        found = next((found for check in checks if (found := check())), None) or self._up_to_date()
        headline, rows = found
        rows = [*rows, ("plan", self._plan()), *self._recall(), *self._rows()]
        return Description(f"{self._resource.query.name}  {headline}", tuple(rows))

    def _stopped(self) -> tuple[str, list[tuple[str, str]]] | None:
        stopped = [shard for shard in self._status.shards if shard.stopped]
        if not stopped:
            return None
        headline = f"STOPPED{self._since_last()}"
        why = [("why", f"shard {shard.shard} (of {self._group.shards}) stopped: {shard.stopped}") for shard in stopped]
        do = (
            "bring back what is missing and restart the engine, or accept the loss in a new generation: "
            f"skyband groups regenerate {self._group.name}"
        )
        return headline, [*why, ("do", do)]

    def _paused(self) -> tuple[str, list[tuple[str, str]]] | None:
        if self._resource.state is not QueryState.PAUSED:
            return None
        updated_us = self._resource.stamp.updated_us
        headline = f"PAUSED since {self._at(updated_us)} ({span(self._now_us - updated_us)} ago)"
        why = "somebody paused it; its group goes on reading, so it answers at once when it is resumed"
        return headline, [("why", why), ("do", f"skyband queries resume {self._path}")]

    def _starting(self) -> tuple[str, list[tuple[str, str]]] | None:
        silent = self._status.silent_shards
        if not silent and self._status.shards:
            return None
        named = ", ".join(map(str, silent[:8])) + (", …" if len(silent) > 8 else "")
        which = f"shard{'s' if len(silent) > 1 else ''} {named} (of {self._group.shards})" if silent else "no shard"
        verb = "has not reported yet" if len(silent) == 1 else "have not reported yet"
        why = f"{which} {verb if silent else 'has reported yet'}, and a result needs every shard"
        return f"STARTING{self._since_last()}", [
            ("why", why),
            ("do", "wait a moment; else see `skyband doctor engine`"),
        ]

    def _no_data(self) -> tuple[str, list[tuple[str, str]]] | None:
        if self._status.rows_in != 0 or self._status.rejected_rows:
            return None
        streams = self._group.streams
        names = ", ".join(stream.name + (f" (topic {stream.topic})" if stream.topic else "") for stream in streams)
        why = f"no record has come yet on {'stream' if len(streams) == 1 else 'any of the streams'} {names}"
        return "ACTIVE, no data yet", [("why", why), ("do", "check that the producers run, and write to these topics")]

    def _all_rejected(self) -> tuple[str, list[tuple[str, str]]] | None:
        rejected = self._status.rejected_rows
        if self._status.rows_in != 0 or not rejected:
            return None
        if self._is_all_late_dropped():
            return self._too_late(rejected, "went to dead letters (late: drop)")
        why = f"all {plural(rejected, 'record')} so far went to dead letters: {self._reasons()}"
        do = "see what they hold: skyband dead-letters tail; then mend the producer, or the stream's fields and bounds"
        return "ACTIVE, but every record is rejected", [("why", why), ("do", do)]

    def _held(self) -> tuple[str, list[tuple[str, str]]] | None:
        held = [shard for shard in self._status.shards if shard.holder and self._lags(shard)]
        if not held:
            return None
        shard = min(held, key=lambda shard: shard.frontier_us)
        holder = shard.holder
        assert holder is not None
        if self._is_fresh() and not holder.stopped:
            return None
        rows = [("why", self._why_held(shard, holder))]
        rows += [
            (
                "then",
                f"{plural(partitions, 'partition')} of {stream} {'is' if partitions == 1 else 'are'} paused "
                f"{format_duration(self._group.max_drift_us)} ahead (max_drift)",
            )
            for stream, partitions in self._status.paused
        ]
        last = self._status.last_result_us
        headline = (
            f"ACTIVE, but no result{self._since_last()}" if last is not None else "ACTIVE, waiting for the first result"
        )
        return headline, [*rows, ("do", self._what_frees(holder))]

    def _all_late(self) -> tuple[str, list[tuple[str, str]]] | None:
        rows_in = self._status.rows_in
        if not rows_in or self._status.rows_late < rows_in:
            return None
        return self._too_late(rows_in, "counted only in windows that ended after they came (late: apply)")

    def _too_late(self, rows: int, fate: str) -> tuple[str, list[tuple[str, str]]]:
        delays = ", ".join(f"{stream.name} {format_duration(stream.max_delay_us)}" for stream in self._group.streams)
        why = f"all {plural(rows, 'row')} came later than their stream's max_delay ({delays}) and {fate}"
        do = "raise max_delay on the stream to what its rows need, then skyband groups regenerate " + self._group.name
        return "ACTIVE, but every row is late", [("why", why), ("do", do)]

    def _first_window_open(self) -> tuple[str, list[tuple[str, str]]] | None:
        status, window = self._status, self._resource.query.window
        if status.last_result_us is not None or status.evaluations or status.rows_in is None:
            return None
        frontier = min(shard.frontier_us for shard in status.shards)
        if window.in_rows:
            came = plural(status.rows_in, "row")
            why = f"the first result comes after {plural(window.slide, 'row')}; {came} came so far"
        elif frontier > MIN_TIME_US:
            end = (frontier // window.slide + 1) * window.slide
            why = f"its first window ends at {self._at(end)}; the streams have come to {self._at(frontier)}"
        else:
            why = "its first window has not ended yet"
        return "ACTIVE, waiting for the first result", [("why", why), ("do", "nothing; it comes by itself")]

    def _nothing_qualifies(self) -> tuple[str, list[tuple[str, str]]] | None:
        status, query = self._status, self._resource.query
        if status.last_result_us is not None or not status.evaluations:
            return None
        if query.require_all or query.require:
            needed = "every stream" if query.require_all else " and ".join(query.require)
            need = f"require asks for an observation of {needed}"
        else:
            need = f"it needs an attribute of {query.score!r}, and a score that is a finite number"
        why = f"{plural(status.evaluations, 'window')} had no object that qualifies: {need}"
        do = f"check require and score: skyband queries explain {self._path}"
        return "ACTIVE, but nothing qualifies", [("why", why), ("do", do)]

    def _idle(self) -> tuple[str, list[tuple[str, str]]] | None:
        shards = self._status.shards
        if any(shard.holder or shard.newest_us == MIN_TIME_US for shard in shards):
            return None
        newest = max(shard.newest_us for shard in shards)
        why = (
            f"no stream brings anything; the newest row is of {self._at(newest)}, and all that is known has been shown"
        )
        return f"IDLE{self._since_last(' last result')}", [
            ("why", why),
            ("do", "nothing; it goes on with the next row"),
        ]

    def _up_to_date(self) -> tuple[str, list[tuple[str, str]]]:
        last = self._status.last_result_us
        if last is None:
            return "ACTIVE, waiting for the first result", [("do", "nothing; it comes by itself")]
        rows = []
        if self._status.last_window_end is not None and not self._resource.query.window.in_rows:
            rows = [
                (
                    "shows",
                    f"the {self._resource.query.window.describe()}, up to {self._at(self._status.last_window_end)}",
                )
            ]
        return f"ACTIVE, up to date: last result {self._at(last)} ({span(self._now_us - last)} ago)", rows

    def _is_fresh(self) -> bool:
        """Return whether a result came so lately that nothing can be said to hold it up."""
        last_us = self._status.last_result_us
        return last_us is not None and self._now_us - last_us < _FRESH_US

    def _lags(self, shard: ShardStatus) -> bool:
        """Return whether the frontier is further behind the newest row than lateness and one slide explain."""
        if shard.newest_us == MIN_TIME_US:
            return False
        window = self._resource.query.window
        usual = max(stream.max_delay_us for stream in self._group.streams) + (0 if window.in_rows else window.slide)
        return shard.newest_us - shard.frontier_us > usual

    def _why_held(self, shard: ShardStatus, holder: Holder) -> str:
        who = f"stream {holder.stream}, partition {holder.partition}"
        if holder.watermark_us == MIN_TIME_US:
            text = f"{who} has brought no row yet, while others are at {self._at(shard.newest_us)}"
        else:
            text = f"{who} holds the frontier at {self._at(shard.frontier_us)}"
        if holder.stopped:
            text += f": it cannot be read, for {holder.stopped}"
        elif holder.unread_rows:
            text += f": it has {plural(holder.unread_rows, 'unread row')}"
            if holder.reader and holder.rows_per_second is not None:
                text += f"; reader {holder.reader} reads {holder.rows_per_second:,.0f} rows/s"
        elif holder.unread_rows == 0:
            text += ": it has been read to its end"
        return text

    def _what_frees(self, holder: Holder) -> str:
        stream = self._group.streams[self._group.stream_index(holder.stream)]
        if holder.stopped:
            return f"as it says; or begin a new generation without it: skyband groups regenerate {self._group.name}"
        if holder.unread_rows:
            return f"see `skyband doctor align`; or give {stream.name} idle.then: flush if that source may be dead"
        if stream.idle_then is IdleThen.HOLD:
            return (
                f"stream {stream.name} has idle.then: hold, so all wait for its next row; check its producer, "
                "or give it idle.then: flush"
            )
        silence = format_duration(stream.idle_after_us)
        return (
            f"nothing: {stream.name} stops holding after {silence} of silence (idle.after); "
            "if this stays, see `skyband doctor align`"
        )

    def _plan(self) -> str:
        status, plan = self._status, self._resource.plan
        parts = [str(plan.algorithm)]
        if status.objects:
            parts.append(f"hot {count(status.hot)} of {plural(status.objects, 'object')}")
        if status.state_bytes:
            parts.append(f"state {size(status.state_bytes)}")
        promises = (
            "none" if not plan.relies_on else f"{len(plan.relies_on)}, broken {plural(status.broken_promises, 'time')}"
        )
        if plan.relies_on and status.broken_promises:
            promises += " (the result may be inexact)"
        return " · ".join([*parts, f"promises: {promises}"])

    def _recall(self) -> list[tuple[str, str]]:
        """Return what an approximate query found of its own results, and whether it forgets more than was allowed."""
        found = self._status.approximation
        if found is None:
            return []
        lines = [("recall", found.describe())]
        if found.is_over_budget:
            lines.append(
                ("warning", "the state would not fit into memory_budget, so more is forgotten than was allowed")
            )
        return lines

    def _rows(self) -> list[tuple[str, str]]:
        status = self._status
        if status.rows_in is None:
            return []
        late = f", {count(status.rows_late)} late (applied)" if status.rows_late else ""
        rejected = status.rejected_rows
        dead = f", {count(rejected)} to dead letters ({self._reasons()}: skyband dead-letters tail)" if rejected else ""
        return [("rows", f"{count(status.rows_in)} in{late}{dead}")]

    def _reasons(self) -> str:
        return ", ".join(f"{count(number)} {reason}" for reason, number in self._status.rejected if number)

    def _is_all_late_dropped(self) -> bool:
        drops = any(stream.late is Late.DROP for stream in self._group.streams)
        return drops and all(reason == "late" for reason, number in self._status.rejected if number)

    def _since_last(self, word: str = "") -> str:
        last = self._status.last_result_us
        if last is None:
            return ""
        if word:
            return f",{word} {self._at(last)} ({span(self._now_us - last)} ago)"
        return f" since {self._at(last)} ({span(self._now_us - last)} ago)"

    def _at(self, us: int) -> str:
        return instant(us, self._now_us, self._zone)
