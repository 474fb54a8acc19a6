"""One run of `produce`: which group, which rows, where to, and what came of it."""

import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from services.produce.generate import generated
from services.produce.interleave import interleaved
from services.produce.pace import Pace
from services.produce.screen import ProduceScreen
from services.produce.sender import Sender
from services.produce.settings import DEFAULT_RATE, ProduceSettings
from services.produce.writer import Written, not_stored, write_rows
from services.runtime.codecs import Codecs
from services.runtime.kafka_errors import missing_topic
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.cli.contexts import chosen_context
from skyband.errors import LogError
from skyband.files.definitions import load_definitions
from skyband.files.rows import Chunk, open_rows
from skyband.model.group import Group

__all__ = ["produce"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of a paced run each batch is small, so that several files, and generated streams, advance together.
_PACED_ROWS = 2_000
_ROWS = 50_000


def produce(settings: ProduceSettings, kafka: KafkaSettings, stop: threading.Event) -> None:
    """Write rows until they end, or `stop`; raise SkybandError if they cannot be read or written.

    What was written by then is summarized in any case.
    """
    group = _group(settings)
    _check_topics(group, KafkaLog(kafka, Codecs()), settings.create_topics)
    pace = _pace(settings)
    chunks = _chunks(settings, group)
    sender = Sender(kafka)
    written = Written()
    screen = ProduceScreen(written, settings.output, time.monotonic)
    try:
        with screen:
            write_rows(sender, group, interleaved(chunks), pace, stop, written)
    finally:
        left = sender.finish()
        screen.summarize(not_stored=left)
    if sender.failure is not None:
        raise sender.failure
    if left:
        raise not_stored(left)


def _group(settings: ProduceSettings) -> Group:
    if settings.definitions is not None:
        return load_definitions(settings.definitions).group
    # Not needed for a file, and slow to import.
    from skyband.client import Client, Tls

    context = chosen_context()
    with Client(context.control, tls=Tls() if context.tls else None) as client:
        return client.get_group(settings.group or "").group


def _check_topics(group: Group, log: KafkaLog, create: int) -> None:
    """Make missing topics if that is wanted. Raises LogError for one that is missing."""
    for stream in group.streams:
        topic = stream.topic or stream.name
        if not log.is_missing(topic):
            continue
        if not create:
            raise LogError(f"{missing_topic(topic)} (`skyband produce --create-topics N` makes it, with N partitions)")
        log.create_topic(topic, create)


def _pace(settings: ProduceSettings) -> Pace:
    if settings.generate:
        rate = DEFAULT_RATE if settings.rate is None else settings.rate
        if rate and settings.manner.rhythm() is not None:
            # Bursts are to be felt: rows go out as their event time passes.
            return Pace(speed=settings.speed or 1.0)
        return Pace(rate=rate)
    return Pace(rate=settings.rate or 0.0, speed=settings.speed or 0.0)


def _chunks(settings: ProduceSettings, group: Group) -> Iterable[Chunk]:
    if not settings.generate:
        is_paced = bool(settings.rate or settings.speed)
        return open_rows(group, list(settings.input), batch_rows=_PACED_ROWS if is_paced else _ROWS)
    begin = settings.begin or datetime.now(UTC)
    rate = settings.rate or DEFAULT_RATE
    return generated(
        group,
        begin_us=(begin - _EPOCH) // timedelta(microseconds=1),
        rows_per_second=rate / (settings.speed or 1.0),
        objects=settings.objects,
        seed=settings.seed,
        rows=settings.rows,
        # A tenth of a second's.
        batch_rows=max(10, min(_PACED_ROWS, int(rate / 10))),
        manner=settings.manner,
    )
