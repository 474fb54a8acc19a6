"""Whether the topics that a reader reads are still there, and still the same."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from confluent_kafka.admin import TopicDescription

from services.runtime.kafka_admin import KafkaAdmin, TopicFacts
from services.runtime.kafka_errors import missing_topic
from skyband.errors import LogError

__all__ = ["TopicWatch"]


class TopicWatch:
    """Asks about topics every so often, without waiting for the answer.

    librdkafka says nothing when an assigned topic is deleted, and goes on in one that was made anew. Every answer also
    tells that Kafka can be reached. Initially there is nothing to watch.
    """

    def __init__(self, admin: KafkaAdmin, every_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._every_s = every_s
        self._monotonic = monotonic
        self._ids: dict[str, str] = {}
        self._asked: dict[str, Future[TopicDescription]] = {}
        self._ask_at_s = 0.0

    def begin(self, facts: Mapping[str, TopicFacts]) -> None:
        """Watch these topics, which are so now, and no others."""
        self._ids = {topic: fact.topic_id for topic, fact in facts.items()}
        self._asked = {}
        self._ask_at_s = self._monotonic() + self._every_s

    def look(self) -> LogError | None:
        """Return what has become of the topics, as far as it is bad and known. Cost: a look at a clock, mostly."""
        if self._asked:
            return self._hear() if all(answer.done() for answer in self._asked.values()) else None
        if self._ids and self._monotonic() >= self._ask_at_s:
            self._asked = self._admin.ask_facts(list(self._ids))
        return None

    def gone(self, topic: str) -> LogError:
        """Return the error for a topic that is not there."""
        return missing_topic(topic, was_there=topic in self._ids)

    def _hear(self) -> LogError | None:
        asked, self._asked = self._asked, {}
        self._ask_at_s = self._monotonic() + self._every_s
        bad: LogError | None = None
        for topic, answer in asked.items():
            facts = self._admin.told_facts(answer)
            if facts is None:
                bad = self.gone(topic)
            elif isinstance(facts, TopicFacts) and facts.topic_id != self._ids[topic]:
                bad = LogError(
                    f"topic {topic!r} was deleted and made anew while it was read; regenerate what reads it to read "
                    "the new one"
                )
        return bad
