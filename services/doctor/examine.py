"""The examination: what is gathered and judged, one part after the other."""

import time
from collections.abc import Callable, Collection, Iterator

from services.doctor.checks_control import check_control
from services.doctor.checks_groups import check_align, check_engine, check_fanout
from services.doctor.checks_kafka import check_clocks, check_topics
from services.doctor.facts import GroupFacts
from services.doctor.finding import Finding, Level, Part
from services.doctor.survey import groups, newest_report_us, read_progress, topics
from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.cli.contexts import Context
from skyband.errors import LogError

__all__ = ["examine"]

_CHECKS: dict[Part, Callable[[GroupFacts, int], Iterator[Finding]]] = {
    Part.ALIGN: check_align,
    Part.ENGINE: check_engine,
    Part.FANOUT: check_fanout,
}
_NEEDED = ("catalog", "progress")
# Who asks a doctor does not want to wait long for the answer that nobody answers.
_PATIENCE_S = 5.0


def examine(kafka: KafkaSettings, context: Context, parts: Collection[Part], time_zone: str) -> Iterator[Finding]:
    """Yield findings as they are made: of Kafka, then of `parts`."""
    settings = kafka.model_copy(update={"request_timeout_s": _PATIENCE_S, "unreachable_after_s": _PATIENCE_S})
    log = KafkaLog(settings, Codecs())
    try:
        yield from _over_kafka(log, parts)
    except LogError as error:
        yield Finding(Part.KAFKA, Level.WRONG, str(error))
    if Part.CONTROL in parts:
        # Imported here: a doctor of Kafka alone needs no gRPC.
        from skyband.client import Client, Tls

        tls = Tls() if context.tls else None
        with Client(context.control, results=context.results or None, tls=tls, retry_s=1.0) as client:
            yield from check_control(client, context.control, time_zone)


def _over_kafka(log: KafkaLog, parts: Collection[Part]) -> Iterator[Finding]:
    found = topics(log)
    yield Finding(Part.KAFKA, Level.OK, f"Kafka at {log.settings.bootstrap} answers")
    yield from check_topics(found)
    if any(topic.partitions is None for topic in found if topic.name in _NEEDED):
        return
    progress = read_progress(log)
    yield from check_clocks(newest_report_us(progress), time.time_ns() // 1_000)
    checks = [check for part, check in _CHECKS.items() if part in parts]
    if not checks:
        return
    facts = groups(log, progress)
    if not facts:
        text, do = "the catalog has no group", "skyband apply -f FILE"
        yield Finding(Part.KAFKA, Level.NOTE, text, do)
    now_us = time.time_ns() // 1_000
    for check in checks:
        for group in facts:
            yield from check(group, now_us)
