"""Tails the results topic for subscribers."""

from collections.abc import Callable, Mapping
from threading import Lock

from skyband.errors import ConflictError, DefinitionError, LogError
from skyband.fanout.committer import partition_of
from skyband.fanout.resume_token import ResultPosition, ResumeToken
from skyband.fanout.subscription import Mode, Subscription
from skyband.log.clock import Clock
from skyband.log.record_log import Position, RecordLog
from skyband.model.result import Result

__all__ = ["ResultTail"]


class ResultTail:
    """Holds the latest result of every live query, and hands each new one to the query's subscribers.

    Initially no query is live. Invariant: one result a live query and at most two more a subscriber are in memory.
    `poll`, `begin`, `end` and `offer_progress` belong to one thread; subscribers come and go from any.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        *,
        results: str = "results",
        from_offsets: Mapping[int, int] | None = None,
        read_timeout_s: float = 5.0,
    ) -> None:
        self._log = log
        self._clock = clock
        self._topic = results
        self._partitions = log.partitions(results)
        self._read_timeout_s = read_timeout_s
        self._lock = Lock()
        self._latest: dict[str, tuple[Result, ResultPosition] | None] = {}
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._read_to = [(from_offsets or {}).get(partition, 0) for partition in range(self._partitions)]
        self._consumer = log.consumer()
        self._consumer.assign({Position(results, partition): offset for partition, offset in enumerate(self._read_to)})

    def begin(self, uid: str) -> None:
        """Make a query live: from now on its latest result is kept."""
        with self._lock:
            self._latest.setdefault(uid, None)

    def end(self, uid: str) -> None:
        """Forget a query and tell its subscribers."""
        with self._lock:
            self._latest.pop(uid, None)
            ended = self._subscriptions.pop(uid, [])
        for subscription in ended:
            subscription.end()

    def poll(self, max_records: int = 10_000) -> int:
        """Take the results that are there, without waiting, and return how many there were."""
        count = 0
        while records := self._consumer.poll(max_records, 0.0):
            count += len(records)
            for record in records:
                self._read_to[record.partition] = record.next_offset
                if isinstance(record.value, Result):
                    self._take(record.value, ResultPosition(record.partition, record.offset))
        return count

    def latest_end(self, uid: str) -> int | None:
        """Return the window end of the latest result seen of a live query."""
        latest = self._latest.get(uid)
        return None if latest is None else latest[0].window_end

    def subscribed(self) -> list[str]:
        """Return the uids of the queries that have subscribers."""
        with self._lock:
            return list(self._subscriptions)

    def offer_progress(self, uid: str, frontier_us: int) -> None:
        """Tell a query's subscribers that it has no more results up to `frontier_us` than those seen."""
        partition = partition_of(uid, self._partitions)
        position = ResultPosition(partition, self._read_to[partition])
        with self._lock:
            for subscription in self._subscriptions.get(uid, ()):
                subscription.offer_progress(frontier_us, position)

    def subscribe(
        self, uid: str, generation: int, *, resume_token: str | None, mode: Mode, wake: Callable[[], None] | None = None
    ) -> Subscription:
        """Return a new subscription to a live query, with the latest result pending unless the token is of that one.

        Raises DefinitionError for a token that is damaged or of another query, ConflictError for one that is outdated.
        """
        subscription = Subscription(uid, generation, mode, self._clock, wake=wake)
        token = ResumeToken.decode(resume_token) if resume_token else None
        base: tuple[Result, ResultPosition] | None = None
        if token is not None:
            self._check(token, uid, generation)
            base = self._base(token, uid)
        with self._lock:
            if base is not None:
                subscription.resume_from(*base)
            latest = self._latest.get(uid)
            if latest is not None:
                subscription.offer(*latest)
            if uid in self._latest:
                self._subscriptions.setdefault(uid, []).append(subscription)
            else:
                subscription.end()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Drop a subscription; one that is dropped already is fine."""
        with self._lock:
            others = [other for other in self._subscriptions.get(subscription.uid, ()) if other is not subscription]
            if others:
                self._subscriptions[subscription.uid] = others
            else:
                self._subscriptions.pop(subscription.uid, None)

    def close(self) -> None:
        """End all subscriptions and stop reading."""
        for uid in self.subscribed():
            self.end(uid)
        self._consumer.close()

    def _take(self, result: Result, position: ResultPosition) -> None:
        with self._lock:
            if result.uid not in self._latest:
                return
            self._latest[result.uid] = result, position
            for subscription in self._subscriptions.get(result.uid, ()):
                subscription.offer(result, position)

    def _check(self, token: ResumeToken, uid: str, generation: int) -> None:
        if token.uid != uid or token.position.partition != partition_of(uid, self._partitions):
            raise DefinitionError("resume token belongs to another query; subscribe without it", field="resume_token")
        if token.generation != generation:
            raise ConflictError(
                f"resume token is of generation {token.generation}, the group now runs generation {generation}; "
                "subscribe without it"
            )

    def _base(self, token: ResumeToken, uid: str) -> tuple[Result, ResultPosition] | None:
        """Return the result the token names: the latest if it is that one, else read again from the log."""
        if token.window_end is None:
            return None
        with self._lock:
            latest = self._latest.get(uid)
        if latest is not None and latest[1] == token.position:
            return latest
        result = self._read(token.position)
        if result is None or result.uid != uid or result.window_end != token.window_end:
            raise ConflictError("resume token is older than the results still kept; subscribe without it")
        return result, token.position

    def _read(self, position: ResultPosition) -> Result | None:
        at = Position(self._topic, position.partition)
        consumer = self._log.consumer()
        try:
            if position.offset >= consumer.end_offsets([at])[at]:
                return None
            consumer.assign({at: position.offset})
            records = consumer.poll(1, self._read_timeout_s)
        except LogError as error:
            raise ConflictError("resume token is older than the results still kept; subscribe without it") from error
        finally:
            consumer.close()
        if not records or records[0].offset != position.offset or not isinstance(records[0].value, Result):
            return None
        return records[0].value
