"""Tails the results topic for subscribers, and looks back into it for those who ask."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from skyband.errors import ConflictError, DefinitionError, NotFoundError
from skyband.fanout.live_query import LiveQuery
from skyband.fanout.result_search import ResultSearch
from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.fanout.subscription import Mode, Subscription
from skyband.log.clock import Clock
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.query import QueryState
from skyband.model.result import Result

__all__ = ["ResultTail"]

_OUTDATED = "resume token is older than the results still kept; subscribe without it"


class ResultTail:
    """Holds the latest result of every live query, and hands each new one to the query's subscribers.

    It begins `tail_offsets` before the end of each partition. The latest result of a query that was quiet since is
    looked for once somebody asks, backwards from there, for at most `search_us`; the next to ask goes on from there.
    Initially no query is live. Invariant: one result a live query and at most two more a subscriber are in memory.
    `poll`, `begin`, `end`, `change_state` and `offer_progress` belong to one thread; subscribers come and go from any.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        *,
        results: str = "results",
        tail_offsets: int = 10_000,
        search_us: int = 5_000_000,
    ) -> None:
        self._clock = clock
        self._search_us = search_us
        self._partitions = log.partitions(results)
        self._lock = Lock()
        self._live: dict[str, LiveQuery] = {}
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._search = ResultSearch(log, results)
        self._consumer = log.consumer()
        places = [Position(results, partition) for partition in range(self._partitions)]
        begin, end = self._consumer.begin_offsets(places), self._consumer.end_offsets(places)
        self._read_to = [max(begin[at], end[at] - tail_offsets) for at in places]
        self._consumer.assign(dict(zip(places, self._read_to, strict=True)))

    def begin(self, uid: str, generation: int) -> None:
        """Make a query live: from now on its latest result is kept. A live one may have a new generation."""
        with self._lock:
            if uid not in self._live:
                partition = partition_of(uid, self._partitions)
                self._live[uid] = LiveQuery(partition, self._read_to[partition])
            for subscription in self._subscriptions.get(uid, ()):
                subscription.generation = generation

    def end(self, uid: str, state: QueryState | None = None) -> None:
        """Forget a query, and tell its subscribers: its state, if it is deleted."""
        with self._lock:
            self._live.pop(uid, None)
            ended = self._subscriptions.pop(uid, [])
        for subscription in ended:
            if state is None:
                subscription.end()
            else:
                subscription.change_state(state)

    def change_state(self, uid: str, state: QueryState) -> None:
        """Tell the subscribers of a query its state."""
        for subscription in self._subscribers(uid):
            subscription.change_state(state)

    def poll(self, max_records: int = 10_000) -> int:
        """Take the results that are there, without waiting, and return how many records there were."""
        count = 0
        while True:
            records = self._consumer.poll(max_records, 0.0)
            count += len(records)
            for record in records:
                if isinstance(record.value, Result):
                    self._take(record.value, record)
                self._read_to[record.partition] = record.next_offset
            if len(records) < max_records:
                return count

    def has_read(self, offsets: Mapping[int, int]) -> bool:
        """Return whether all results below these offsets, by partition, were taken."""
        return all(self._read_to[partition] >= offset for partition, offset in offsets.items())

    def subscribed(self) -> list[str]:
        """Return the uids of the queries that have subscribers."""
        with self._lock:
            return list(self._subscriptions)

    def offer_progress(self, uid: str, frontier_us: int) -> None:
        """Tell a query's subscribers that it has no more results up to `frontier_us` than those seen."""
        partition = partition_of(uid, self._partitions)
        position = ResultPosition(partition, self._read_to[partition])
        for subscription in self._subscribers(uid):
            subscription.offer_progress(frontier_us, position)

    def subscribe(
        self, uid: str, generation: int, *, resume_token: str | None, mode: Mode, wake: Callable[[], None] | None = None
    ) -> Subscription:
        """Return a new subscription to a live query, with the latest result pending unless the token is of that one.

        Raises DefinitionError for a token that is damaged or of another query, ConflictError for one that is outdated,
        LogError if the log cannot be read.
        """
        subscription = Subscription(uid, generation, mode, self._clock, wake=wake)
        token = ResumeToken.decode(resume_token) if resume_token else None
        if token is not None:
            self._check(token, uid, generation)
        self._latest(uid, self._clock.now_us() + self._search_us)
        if token is not None and token.window_end is not None:
            subscription.resume_from(self._base(token, uid, token.window_end), token.position)
        with self._lock:
            live = self._live.get(uid)
            if live is not None:
                if live.latest is not None:
                    subscription.offer(*live.latest)
                self._subscriptions.setdefault(uid, []).append(subscription)
                return subscription
        subscription.change_state(QueryState.DELETED)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription; one that is dropped already is fine."""
        with self._lock:
            others = [other for other in self._subscriptions.get(subscription.uid, ()) if other is not subscription]
            if others:
                self._subscriptions[subscription.uid] = others
            else:
                self._subscriptions.pop(subscription.uid, None)

    def latest(self, uid: str, name: str) -> Result:
        """Return the latest result of a live query; raise NotFoundError if there is none, or it takes too long."""
        latest = self._latest(uid, self._clock.now_us() + self._search_us)
        if latest is None:
            live = self._live.get(uid)
            if live is not None and live.is_unknown():
                raise self._not_in_time(name)
            raise NotFoundError(f"query {name!r} has no result that is still kept; see whether its group brings rows")
        return latest[0]

    def at(self, uid: str, name: str, window_end: int) -> Result:
        """Return the result of a live query at a window end; raise NotFoundError if there is none, or it is not kept.

        Cost: one read of the log for the last 1,024 results of a query; before them, a search.
        """
        deadline_us = self._clock.now_us() + self._search_us
        latest = self.latest(uid, name)
        if latest.window_end == window_end:
            return latest
        none = NotFoundError(
            f"query {name!r} has no result with window end {window_end} that is still kept; its latest is at "
            f"{latest.window_end}, and a window without rows has one only behind one with rows"
        )
        with self._lock:
            live = self._live.get(uid)
            if live is None or window_end > latest.window_end:
                raise none
            offset, spans, below = live.offset_of(window_end), live.spans(window_end), live.indexed_from
        if offset is None and spans:
            raise none
        with self._searching(name, deadline_us):
            if offset is not None:
                found = self._search.at(ResultPosition(live.partition, offset))
            else:
                found = self._look_back_for(uid, live.partition, below, window_end, name, deadline_us)
        if found is None or found.window_end != window_end:
            raise none
        return found

    def close(self) -> None:
        """End all subscriptions and stop reading."""
        for uid in self.subscribed():
            self.end(uid)
        self._consumer.close()
        with self._search.lock:
            self._search.close()

    def _subscribers(self, uid: str) -> Sequence[Subscription]:
        with self._lock:
            return tuple(self._subscriptions.get(uid, ()))

    def _take(self, result: Result, record: Record) -> None:
        with self._lock:
            live = self._live.get(result.uid)
            if live is None:
                return
            live.take(result, record.offset)
            for subscription in self._subscriptions.get(result.uid, ()):
                subscription.offer(result, ResultPosition(record.partition, record.offset))

    def _latest(self, uid: str, deadline_us: int) -> tuple[Result, ResultPosition] | None:
        """Return the latest result, looked for if need be; None if there is none, or none was found in time."""
        live = self._live.get(uid)
        if live is not None and live.is_unknown():
            with self._search.lock:
                if self._clock.now_us() <= deadline_us:
                    self._look_back(live, deadline_us)
        return None if live is None else live.latest

    def _look_back(self, live: LiveQuery, deadline_us: int) -> None:
        if not live.is_unknown():
            return
        for start, records in self._search.backwards(live.partition, live.seen_from):
            self._fill(live.partition, start, live.seen_from, records)
            if not live.is_unknown() or self._clock.now_us() > deadline_us:
                return
        live.seen_from = 0

    def _fill(self, partition: int, start: int, end: int, records: Sequence[Record]) -> None:
        """Take from a block what is the latest of any query that was quiet since."""
        with self._lock:
            quiet = {
                uid: live
                for uid, live in self._live.items()
                if live.partition == partition and live.latest is None and start < live.seen_from <= end
            }
            newest: dict[str, tuple[Result, int]] = {}
            for record in records:
                value = record.value
                if isinstance(value, Result) and value.uid in quiet and record.offset < quiet[value.uid].seen_from:
                    newest[value.uid] = value, record.offset
            for uid, live in quiet.items():
                live.seen_from = start
                if uid in newest:
                    live.take(*newest[uid])

    def _look_back_for(
        self, uid: str, partition: int, below: int, window_end: int, name: str, deadline_us: int
    ) -> Result | None:
        for _, records in self._search.backwards(partition, below):
            for record in reversed(records):
                value = record.value
                # A query's window ends ascend, so that an earlier one ends the search.
                if isinstance(value, Result) and value.uid == uid and value.window_end <= window_end:
                    return value
            if self._clock.now_us() > deadline_us:
                raise self._not_in_time(name)
        return None

    @contextmanager
    def _searching(self, name: str, deadline_us: int) -> Iterator[None]:
        with self._search.lock:
            if self._clock.now_us() > deadline_us:
                raise self._not_in_time(name)
            yield

    def _not_in_time(self, name: str) -> NotFoundError:
        seconds = self._search_us / 1_000_000
        return NotFoundError(
            f"the result of query {name!r} was not found within {seconds:g} s; ask again, or for a later one"
        )

    def _check(self, token: ResumeToken, uid: str, generation: int) -> None:
        if token.uid != uid or token.position.partition != partition_of(uid, self._partitions):
            raise DefinitionError("resume token belongs to another query; subscribe without it", field="resume_token")
        if token.generation != generation:
            raise ConflictError(
                f"resume token is of generation {token.generation}, the group now runs generation {generation}; "
                "subscribe without it"
            )

    def _base(self, token: ResumeToken, uid: str, window_end: int) -> Result:
        """Return the result the token names: the latest if it is that one, else read again from the log."""
        live = self._live.get(uid)
        latest = live.latest if live is not None else None
        if latest is not None and latest[1] == token.position:
            return latest[0]
        with self._search.lock:
            result = self._search.at(token.position)
        if result is None or result.uid != uid or result.window_end != window_end:
            raise ConflictError(_OUTDATED)
        return result
