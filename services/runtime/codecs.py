"""What every internal topic carries, as bytes: values of the model there and back."""

from pathlib import Path

from services.runtime.codec_aligned import ALIGNED_BATCH
from services.runtime.codec_marks import MARK
from services.runtime.codec_partials import PARTIAL
from services.runtime.codec_progress import PROGRESS
from services.runtime.codec_queries import CATALOG, CHECKPOINT
from services.runtime.codec_results import DEAD_LETTER, RESULT
from services.runtime.codec_schemas import NAMESPACE, SCHEMAS, VersionedSchema
from services.runtime.codec_statistics import STATISTICS
from services.runtime.codec_value import ValueCodec
from services.runtime.topics import Topics
from skyband.errors import LogError

__all__ = ["VALUES", "Codecs"]

# What each schema holds. The first of a schema's codecs whose class a value has is taken.
VALUES: dict[str, tuple[ValueCodec, ...]] = {
    "aligned_batch": ALIGNED_BATCH,
    "catalog_event": CATALOG,
    "checkpoint": CHECKPOINT,
    "dead_letter": DEAD_LETTER,
    "mark": MARK,
    "partial": PARTIAL,
    "progress": PROGRESS,
    "result": RESULT,
    "statistics": STATISTICS,
}


class Codecs:
    """Writes and reads the values of all topics that ``topics.yaml`` names. Any number of threads may use it.

    A schema's top record is the value itself, or has one field ``value``, a union of the records that it may be.
    """

    def __init__(self, schemas: Path = SCHEMAS) -> None:
        """Read the topics and schemas in a folder. Raises LogError if they cannot be read."""
        self._topics = Topics(schemas)
        self._schemas = {stem: VersionedSchema(stem, schemas) for stem in VALUES}
        self._by_name = {stem: {codec.name: codec for codec in codecs} for stem, codecs in VALUES.items()}

    def encode(self, topic: str, value: object) -> bytes | None:
        """Return the bytes of a value of this topic; None, a tombstone, stays None.

        Raises LogError for a topic that is not an internal one, and a value that does not belong into it.
        """
        if value is None:
            return None
        schema = self._schema_of(topic)
        codec = next((codec for codec in VALUES[schema.stem] if isinstance(value, codec.kind)), None)
        if codec is None:
            raise LogError(
                f"a {type(value).__name__} does not belong into topic {topic!r}, which holds "
                f"{' or '.join(self._by_name[schema.stem])}; its writer is at fault"
            )
        try:
            record = codec.write(value)
            if codec.name != schema.record_name:
                record = {"value": (f"{NAMESPACE}.{codec.name}", record)}
            return schema.write(record)
        except LogError:
            raise
        except Exception as error:
            raise LogError(
                f"a {codec.name} for topic {topic!r} cannot be written ({_named(error)}); its writer is at fault"
            ) from error

    def decode(self, topic: str, data: bytes | None) -> object:
        """Return the value that bytes of this topic hold, in whichever version; None stays None.

        Arrays are writable and stand alone. Raises LogError for damaged bytes and newer versions.
        """
        if data is None:
            return None
        schema = self._schema_of(topic)
        try:
            record = schema.read(data)
            name = schema.record_name
            if name not in self._by_name[schema.stem]:
                name, record = record["value"]
                name = name.removeprefix(f"{NAMESPACE}.")
            return self._by_name[schema.stem][name].read(record)
        except LogError:
            raise
        except Exception as error:
            what_to_do = self._topics.topic_of(topic).if_damaged
            raise LogError(f"a record of topic {topic!r} is damaged ({_named(error)}); {what_to_do}") from error

    def _schema_of(self, topic: str) -> VersionedSchema:
        return self._schemas[self._topics.topic_of(topic).schema]


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
