"""What is made but not yet in the log: batches and dead letters, in order."""

from collections import deque
from dataclasses import dataclass

from skyband.errors import CapacityError
from skyband.log.record_log import Producer

__all__ = ["Outbox"]


@dataclass(frozen=True, slots=True)
class _Message:
    topic: str
    partition: int
    key: bytes
    value: object


class Outbox:
    """Messages on their way to a producer, first in, first out; `peak`: most that ever waited.

    Begins empty. A message leaves when the producer takes it; it is stored only after the producer's next flush.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._messages: deque[_Message] = deque()
        self.peak = 0

    def __len__(self) -> int:
        """Return how many messages wait."""
        return len(self._messages)

    def put(self, topic: str, partition: int, key: bytes, value: object) -> None:
        """Append a message."""
        self._messages.append(_Message(topic, partition, key, value))
        self.peak = max(self.peak, len(self._messages))

    def send(self, now_us: int) -> bool:
        """Hand over as many as the producer takes; return whether none is left."""
        while self._messages:
            message = self._messages[0]
            try:
                self._producer.send(
                    message.topic, message.partition, message.value, key=message.key, timestamp_us=now_us
                )
            except CapacityError:
                return False
            self._messages.popleft()
        return True

    def store(self, now_us: int) -> bool:
        """Hand over and flush until nothing waits, as long as flushing makes room; return whether all is stored."""
        while not self.send(now_us):
            waiting = len(self._messages)
            self._producer.flush()
            self.send(now_us)
            if len(self._messages) == waiting:
                return False
        self._producer.flush()
        return True
