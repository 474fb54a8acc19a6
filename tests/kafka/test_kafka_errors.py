"""Every error of Kafka's becomes one sentence that says what is wrong and what to do."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.runtime.kafka_errors import (
    Doing,
    cause_of,
    explain,
    lost_offset,
    missing_topic,
    too_few_partitions,
    unreachable,
)
from skyband.errors import LogError, TakenOverError
from skyband.log.commit_refused import CommitRefusedError

DOING = Doing("read", "here:1", topic="rows", group="readers", transactional_id="writer", member="left")

SENTENCES = [
    (KafkaError._TRANSPORT, "", "cannot reach Kafka at here:1"),
    (KafkaError.UNKNOWN_TOPIC_OR_PART, "", "topic 'rows' does not exist; create it before"),
    (KafkaError.TOPIC_AUTHORIZATION_FAILED, "", "denies this user access to topic 'rows'; let an administrator"),
    (KafkaError.GROUP_AUTHORIZATION_FAILED, "", "denies this user access to consumer group 'readers'"),
    (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "", "denies this user access to transactional id 'writer'"),
    (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "", "denies this user access to the cluster, to read"),
    (KafkaError.FENCED_INSTANCE_ID, "", "another process has the member name 'left' in group 'readers'"),
    (KafkaError._FATAL, "fenced: same group.instance.id", "another process has the member name 'left'"),
    (KafkaError._MAX_POLL_EXCEEDED, "", "has not polled for so long that its partitions went to others"),
    (KafkaError.MSG_SIZE_TOO_LARGE, "", "a record for topic 'rows' is larger than the topic takes; raise its max"),
    (
        KafkaError.INVALID_REQUIRED_ACKS,
        "why",
        "Kafka at here:1 cannot read (topic 'rows'): why (INVALID_RE",
    ),
]


@pytest.mark.parametrize(("code", "reason", "words"), SENTENCES)
def test_an_error_is_said_in_words(code: int, reason: str, words: str) -> None:
    error = explain(KafkaError(code, reason or None), DOING)
    assert words in str(error)
    assert type(error) is LogError


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_a_producer_whose_place_is_taken_can_be_told_apart(code: int) -> None:
    with pytest.raises(TakenOverError, match="with the transactional id 'writer' has taken over; discard"):
        raise explain(KafkaError(code), DOING)


@pytest.mark.parametrize(
    "code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS]
)
def test_a_commit_that_a_rebalance_overtook_can_be_told_apart(code: int) -> None:
    with pytest.raises(CommitRefusedError, match="group 'readers' shares its partitions out anew"):
        raise explain(KafkaError(code), DOING)


REFUSALS = [
    (
        "a/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
        "cannot reach",
    ),
    ("a:1/bootstrap: Failed to resolve 'a:1': Name or service not known", "cannot reach Kafka at here:1 (a:1/boot"),
    ("SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener? (after 1ms)", "speaks plain text"),
    ("Disconnected: SSL connection closed by peer (after 9ms in state SSL_HANDSHAKE)", "speaks plain text"),
    ("SASL PLAIN mechanism handshake failed: broker's supported mechanisms:  (after 1ms in st", "speaks plain text"),
    (
        "SASL GSSAPI mechanism handshake failed: broker's supported mechanisms: PLAIN,SCRAM",
        "does not offer the SASL me",
    ),
    ("might be caused by incorrect security.protocol (connecting to a SSL listener?)", "hangs up"),
    ("1/1 brokers are down", "hangs up"),
    ("SASL authentication error: Authentication failed: Invalid username or password", "does not accept the user"),
    ("SSL handshake failed: certificate verify failed: broker certificate could not be verified", "do not trust each"),
]


@pytest.mark.parametrize(("detail", "words"), REFUSALS)
def test_a_connection_that_does_not_come_about_is_said_in_words(detail: str, words: str) -> None:
    said = str(unreachable("here:1", detail))
    assert words in said
    assert detail in said


def test_what_is_not_there_is_said_with_what_is() -> None:
    assert "has partitions 0 to 1, not 5" in str(too_few_partitions("rows", 5, 2))
    assert "was deleted while it was read" in str(missing_topic("rows", was_there=True))
    assert "offset 3 of topic 'rows' partition 1 was deleted before it was read, the lowest left is 4" in str(
        lost_offset("rows", 1, 3, (4, 9))
    )
    assert "offset 10 of topic 'rows' partition 1 is beyond its end 9" in str(lost_offset("rows", 1, 10, (4, 9)))
    assert "is not there to be read" in str(lost_offset("rows", 1, 10, None))


def test_the_cause_is_found_below_what_a_callback_raised() -> None:
    inner = KafkaException(KafkaError(KafkaError._FENCED, "by a newer one"))
    outer = SystemError("returned a result with an exception set")
    outer.__cause__ = inner
    assert cause_of(outer).code() == KafkaError._FENCED
    assert cause_of(inner).code() == KafkaError._FENCED
    assert cause_of(SystemError("nothing below")).code() == KafkaError._FAIL
