"""A log that tells of each call before and after it is done, so that a test can let it fail anywhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from skyband.errors import LogError
from skyband.log.memory import MemoryLog
from skyband.log.memory_consumer import MemoryConsumer
from skyband.log.memory_producer import MemoryProducer
from skyband.log.record_log import Committed, Member, Position, Record

Hook = Callable[[str], None]


class CrashedError(LogError):
    """The process is dead."""


class CrashAt:
    """Raises at the n-th call, and at all that follow: a dead process does nothing more."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.calls = 0

    def __call__(self, call: str) -> None:
        self.calls += 1
        if self.calls >= self.n:
            raise CrashedError(f"dead at call {self.n}, now {call}")


class WatchedLog:
    """A MemoryLog seen by one process. `expire` is what a broker does with the members of a dead one.

    `hidden` topics deliver nothing; `apart` makes its groups of readers others than those of the log, so that it never
    hears that its partitions have gone.
    """

    def __init__(self, log: MemoryLog, hook: Hook = lambda call: None, *, apart: bool = False) -> None:
        self.log = log
        self.hook = hook
        self.apart = apart
        self.hidden: set[str] = set()
        self._consumers: list[MemoryConsumer] = []

    def expire(self) -> None:
        for consumer in self._consumers:
            consumer.close()

    def create_topic(self, name: str, partitions: int) -> None:
        self.log.create_topic(name, partitions)

    def partitions(self, name: str) -> int:
        self.hook("partitions")
        return self.log.partitions(name)

    def producer(self, transactional_id: str | None = None) -> "WatchedProducer":
        self.hook("producer")
        made = WatchedProducer(self, self.log.producer(transactional_id))
        self.hook("producer made")
        return made

    def consumer(self, group: str | None = None) -> "WatchedConsumer":
        self.hook("consumer")
        self._consumers.append(self.log.consumer(f"{group} apart" if group and self.apart else group))
        return WatchedConsumer(self, self._consumers[-1])

    def commit_starts(self, group: str, offsets: Mapping[Position, int]) -> None:
        self.log.commit_starts(group, offsets)

    def topic_id(self, name: str) -> str:
        return self.log.topic_id(name)


class WatchedProducer:
    def __init__(self, watched: WatchedLog, inner: MemoryProducer) -> None:
        self._watched = watched
        self._inner = inner

    def send(
        self,
        topic: str,
        partition: int,
        value: object,
        *,
        key: bytes | None = None,
        timestamp_us: int = 0,
        span: int = 1,
    ) -> None:
        self._watched.hook("send")
        self._inner.send(topic, partition, value, key=key, timestamp_us=timestamp_us, span=span)

    def flush(self) -> None:
        self._watched.hook("flush")
        self._inner.flush()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._watched.hook("begin")
        with self._inner.transaction():
            yield
            self._watched.hook("end")
        self._watched.hook("ended")

    def close(self) -> None:
        self._inner.close()


class WatchedConsumer:
    def __init__(self, watched: WatchedLog, inner: MemoryConsumer) -> None:
        self._watched = watched
        self._inner = inner

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        self._watched.hook("assign")
        self._inner.assign(positions)

    def subscribe(self, topics: Sequence[str], member: Member) -> None:
        self._watched.hook("subscribe")
        self._inner.subscribe(topics, member)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        self._watched.hook("poll")
        hidden = [at for at in self._inner._cursors if at.topic in self._watched.hidden]
        self._inner.pause(hidden)
        records = self._inner.poll(max_records, timeout_s)
        self._inner.resume(hidden)
        return records

    def pause(self, positions: Sequence[Position]) -> None:
        self._inner.pause(positions)

    def resume(self, positions: Sequence[Position]) -> None:
        self._inner.resume(positions)

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        self._watched.hook("begin offsets")
        return self._inner.begin_offsets(positions)

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        self._watched.hook("end offsets")
        return self._inner.end_offsets(positions)

    def committed(self, positions: Sequence[Position]) -> dict[Position, Committed]:
        return self._inner.committed(positions)

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        self._watched.hook("commit")
        self._inner.commit(offsets, notes)

    def close(self) -> None:
        self._inner.close()
