"""What Kafka's errors mean, in one sentence each: what is wrong, and what to do."""

import re
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from skyband.errors import LogError, TakenOverError
from skyband.log.commit_refused import CommitRefusedError

__all__ = [
    "FENCED",
    "MISSING",
    "OUT_OF_RANGE",
    "REBALANCED",
    "UNREACHABLE",
    "Doing",
    "cause_of",
    "explain",
    "lost_offset",
    "missing_topic",
    "too_few_partitions",
    "unreachable",
]

UNREACHABLE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)
MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._NOENT,
    }
)
OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
REBALANCED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError._ASSIGNMENT_LOST,
    }
)
FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
    }
)


@dataclass(frozen=True, slots=True)
class Doing:
    """What was being done, in words that follow "cannot", and with what, as far as it is known."""

    what: str
    bootstrap: str
    topic: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    member: str = ""


def cause_of(error: BaseException) -> KafkaError:
    """Return what Kafka or its client said. A SystemError stands for what was raised inside of a callback."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, KafkaException) and found.args and isinstance(found.args[0], KafkaError):
            return found.args[0]
        found = found.__cause__ or found.__context__
    return KafkaError(KafkaError._FAIL, str(error))


def explain(error: KafkaError, doing: Doing) -> LogError:
    """Return the LogError for an error of Kafka's; CommitRefusedError for a commit that a rebalance overtook."""
    code = error.code()
    if code in UNREACHABLE:
        return unreachable(doing.bootstrap, error.str())
    if code in MISSING and doing.topic is not None:
        return missing_topic(doing.topic)
    if code in REBALANCED:
        return CommitRefusedError(
            f"group {doing.group!r} shares its partitions out anew, so this member cannot {doing.what} now; "
            "poll, and go on with what is assigned"
        )
    if code == KafkaError._FATAL and "group.instance.id" in error.str():
        code = KafkaError.FENCED_INSTANCE_ID
    if code in FENCED:
        return TakenOverError(
            f"another producer with the transactional id {doing.transactional_id!r} has taken over; "
            "discard this one and read what is committed"
        )
    return LogError(_denied(code, doing) or _shut_out(code, doing) or _other(error, doing))


# What librdkafka says of a connection that does not come about, and what that means; the first that fits holds.
_REFUSALS = (
    (
        re.compile(r"PLAINTEXT broker listener|SSL connection closed by peer|supported mechanisms:\s*(\(|$)"),
        "Kafka at {at} speaks plain text, not the security protocol that is set ({detail}); "
        "set SKYBAND_KAFKA_SECURITY_PROTOCOL as its listener is",
    ),
    (
        # A connection that is accepted and closed again is told as the last broker's loss only.
        re.compile(r"SSL listener|brokers are down"),
        "Kafka at {at} hangs up ({detail}), which it does when its listener wants SSL or SASL; "
        "set SKYBAND_KAFKA_SECURITY_PROTOCOL as its listener is",
    ),
    (
        re.compile(r"certificate|SSL handshake"),
        "Kafka at {at} and this client do not trust each other ({detail}); "
        "check SKYBAND_KAFKA_SSL_CA_LOCATION and the other SKYBAND_KAFKA_SSL_… settings",
    ),
    (
        re.compile(r"supported mechanisms:"),
        "Kafka at {at} does not offer the SASL mechanism that is set ({detail}); set SKYBAND_KAFKA_SASL_MECHANISM",
    ),
    (
        re.compile(r"SASL|[Aa]uthentication"),
        "Kafka at {at} does not accept the user and password ({detail}); "
        "check SKYBAND_KAFKA_SASL_USERNAME and SKYBAND_KAFKA_SASL_PASSWORD",
    ),
    (
        re.compile(r""),
        "cannot reach Kafka at {at} ({detail}). Is it running? `skyband up` starts one on this machine.",
    ),
)


def unreachable(bootstrap: str, detail: str) -> LogError:
    """Return the error for brokers that do not answer, or not as expected; `detail` is what librdkafka said."""
    sentence = next(sentence for pattern, sentence in _REFUSALS if pattern.search(detail))
    return LogError(sentence.format(at=bootstrap, detail=detail))


def missing_topic(topic: str, *, was_there: bool = False) -> LogError:
    """Return the error for a topic that does not exist, or not any more."""
    if was_there:
        return LogError(
            f"topic {topic!r} was deleted while it was read; if it was meant to, delete or regenerate what reads it"
        )
    return LogError(f"topic {topic!r} does not exist; create it before, or correct the name")


def too_few_partitions(topic: str, partition: int, partitions: int) -> LogError:
    """Return the error for a partition that a topic does not have."""
    return LogError(
        f"topic {topic!r} has partitions 0 to {partitions - 1}, not {partition}; "
        "it was made anew with fewer, or the definition is of another cluster"
    )


def lost_offset(topic: str, partition: int, offset: int, kept: tuple[int, int] | None) -> LogError:
    """Return the error for an offset that cannot be read; `kept` are the offsets [begin, end) that can."""
    if kept is None:
        return LogError(f"offset {offset} of topic {topic!r} partition {partition} is not there to be read")
    begin, end = kept
    if offset < begin:
        return LogError(
            f"offset {offset} of topic {topic!r} partition {partition} was deleted before it was read, the lowest left "
            f"is {begin}; regenerate the group to go on without what is lost, and give the topic more retention"
        )
    return LogError(
        f"offset {offset} of topic {topic!r} partition {partition} is beyond its end {end}: the topic was made anew or "
        "has lost records; regenerate the group to read it from a new start"
    )


def _denied(code: int, doing: Doing) -> str | None:
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        what = f"topic {doing.topic!r}" if doing.topic else "a topic"
    elif code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        what = f"consumer group {doing.group!r}"
    elif code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        what = f"transactional id {doing.transactional_id!r}"
    elif code in (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.POLICY_VIOLATION):
        what = f"the cluster, to {doing.what}"
    else:
        return None
    return (
        f"Kafka at {doing.bootstrap} denies this user access to {what}; "
        "let an administrator grant it, or use another user"
    )


def _shut_out(code: int, doing: Doing) -> str | None:
    if code == KafkaError.FENCED_INSTANCE_ID:
        return (
            f"another process has the member name {doing.member!r} in group {doing.group!r} and has taken over; "
            "give every process a SKYBAND_KAFKA_MEMBER of its own"
        )
    if code == KafkaError._MAX_POLL_EXCEEDED:
        return (
            f"this member of group {doing.group!r} has not polled for so long that its partitions went to others; "
            "read anew, with a larger SKYBAND_KAFKA_MAX_POLL_INTERVAL_S if its work takes that long"
        )
    return None


def _other(error: KafkaError, doing: Doing) -> str:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return (
            f"a record for topic {doing.topic!r} is larger than the topic takes; "
            "raise its max.message.bytes, or let the writer send smaller batches"
        )
    place = f" (topic {doing.topic!r})" if doing.topic else f" (group {doing.group!r})" if doing.group else ""
    return (
        f"Kafka at {doing.bootstrap} cannot {doing.what}{place}: {error.str()} ({error.name()}); see the broker's log"
    )
