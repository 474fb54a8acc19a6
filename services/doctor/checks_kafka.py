"""Whether Kafka holds what Skyband needs."""

from collections.abc import Iterator, Sequence

from services.doctor.facts import TopicFacts
from services.doctor.finding import Finding, Level, Part
from skyband.cli.figures import count, span

__all__ = ["check_clocks", "check_topics"]

# What a well kept clock may be off, and a record may take.
_APART_US = 1_000_000


def check_topics(topics: Sequence[TopicFacts]) -> Iterator[Finding]:
    """Yield what is wrong with Skyband's topics, or that nothing is."""
    missing = [topic.name for topic in topics if topic.partitions is None]
    if len(missing) == len(topics):
        yield _wrong("there is no topic of Skyband's: it has never run on this Kafka", "skyband serve, or skyband up")
        return
    if missing:
        yield _wrong(f"topics are missing: {', '.join(missing)}", "restart a service: each makes what is missing")
    for topic in topics:
        if topic.partitions not in (None, topic.wanted_partitions):
            yield _wrong(
                f"topic {topic.name} has {count(topic.partitions or 0, 'partition')}, not {topic.wanted_partitions}",
                "make it anew with as many, while nothing of Skyband runs; see schemas/topics.yaml",
            )
        elif topic.partitions is not None and topic.cleanup != topic.wanted_cleanup:
            yield _wrong(
                f"topic {topic.name} has cleanup.policy {topic.cleanup}, not {topic.wanted_cleanup}",
                f"set it with kafka-configs --alter --topic {topic.name}; what is lost by then stays lost",
            )
    if not missing and all(t.partitions == t.wanted_partitions and t.cleanup == t.wanted_cleanup for t in topics):
        yield Finding(Part.KAFKA, Level.OK, f"{count(len(topics), 'topic')} of Skyband's are as they should be")


def check_clocks(newest_us: int | None, now_us: int) -> Iterator[Finding]:
    """Yield what the newest report's time says of the clocks here and there.

    Kafka tells no clock of its own; records carry that of their writers.
    """
    if newest_us is None:
        yield Finding(Part.KAFKA, Level.NOTE, "clocks are not compared: no service has reported in the last hour")
    elif newest_us - now_us > _APART_US:
        ahead = span((newest_us - now_us) / 1e6)
        yield _wrong(f"a service's clock is {ahead} ahead of this machine's", "let all machines keep time (NTP)")
    elif now_us - newest_us < 10 * _APART_US:
        yield Finding(Part.KAFKA, Level.OK, "clocks of services and of this machine agree to within some seconds")
    else:
        age = span((now_us - newest_us) / 1e6)
        yield Finding(Part.KAFKA, Level.NOTE, f"clocks are not compared: the newest report is {age} old")


def _wrong(text: str, do: str) -> Finding:
    return Finding(Part.KAFKA, Level.WRONG, text, do)
