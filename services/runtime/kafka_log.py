"""The record log on Kafka."""

from collections.abc import Mapping

from services.runtime.kafka_admin import KafkaAdmin
from services.runtime.kafka_consumer import KafkaConsumer
from services.runtime.kafka_names import KafkaNames
from services.runtime.kafka_producer import KafkaProducer
from services.runtime.kafka_reach import KafkaReach
from services.runtime.kafka_records import RecordReader, ValueCodecs
from services.runtime.settings import KafkaSettings
from services.runtime.source_decoder import SourceDecoder
from skyband.log.record_log import Position

__all__ = ["KafkaLog", "ValueCodecs"]


class KafkaLog:
    """Topics of a Kafka cluster, and readers and writers of them; any number of threads may use it.

    Records of topics with a decoder (see `reading`) carry SourceRows, one record a consumed chunk and partition; those
    of all other topics carry what the codecs make of them. Nothing is connected before the first question.

    Reading and writing are patient: while Kafka is out of reach they wait, up to `unreachable_after_s`, and `trouble`
    says why. Other questions fail after `request_timeout_s`. All failures are LogError.
    """

    def __init__(self, settings: KafkaSettings, codecs: ValueCodecs) -> None:
        self.settings = settings
        self._codecs = codecs
        self._decoders: Mapping[str, SourceDecoder] = {}
        self._names = KafkaNames(settings.topic_prefix)
        self._reach = KafkaReach(settings.bootstrap, settings.unreachable_after_s)
        self._admin = KafkaAdmin(settings, self._names, self._reach)

    @property
    def trouble(self) -> str | None:
        """Why Kafka cannot be reached, in one sentence, or None while it can."""
        return self._reach.trouble

    @property
    def has_answered(self) -> bool:
        """Whether Kafka has ever been reached."""
        return self._reach.has_answered

    def reading(self, decoders: Mapping[str, SourceDecoder]) -> "KafkaLog":
        """Return the same log, whose consumers read these topics as source rows."""
        log = object.__new__(KafkaLog)
        log.__dict__.update(self.__dict__)
        log._decoders = dict(decoders)
        return log

    def create_topic(self, name: str, partitions: int, *, config: Mapping[str, str] | None = None) -> None:
        """Make a topic, with settings by Kafka's names; an existing one with as many partitions stays as it is.

        Raises LogError for another number of partitions.
        """
        self._admin.create_topic(name, partitions, config or {})

    def partitions(self, name: str) -> int:
        """Return a topic's number of partitions; LogError if it does not exist."""
        return self._admin.facts(name).partitions

    def topic_id(self, name: str) -> str:
        """Return what tells this topic from another of the same name, made after it was deleted."""
        return self._admin.facts(name).topic_id

    def topic_config(self, name: str) -> dict[str, str]:
        """Return the settings of a topic, by Kafka's names."""
        return self._admin.topic_config(name)

    def is_missing(self, name: str) -> bool:
        """Return whether there is no such topic."""
        return self._admin.find(name) is None

    def producer(self, transactional_id: str | None = None) -> KafkaProducer:
        """Return a new producer; with an id, the only one of that id that can still write."""
        return KafkaProducer(self.settings, self._admin, self._reach, self._names, self._codecs, transactional_id)

    def consumer(self, group: str | None = None) -> KafkaConsumer:
        """Return a new consumer, committing for `group` if given."""
        reader = RecordReader(self._names, self._codecs, self._decoders)
        return KafkaConsumer(self.settings, self._admin, self._reach, self._names, reader, group)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, if it is there, and wait until it is gone."""
        self._admin.delete_topic(name)

    def commit_starts(
        self, group: str, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None
    ) -> None:
        """Store at which offsets a group without members begins; what it has stored already stays.

        With `notes`, stored beside the offsets, it begins there whatever was stored.
        """
        self._admin.commit_starts(group, offsets, notes)
