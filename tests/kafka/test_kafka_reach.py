"""Whether Kafka can be reached is told from what clients say, in words, and for how long."""

import pytest
from confluent_kafka import KafkaError

from services.runtime.kafka_reach import KafkaReach
from skyband.errors import LogError

REFUSED = KafkaError(KafkaError._TRANSPORT, "127.0.0.1:9092/1: Connection refused")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
IN_WORDS = (
    "cannot reach Kafka at here:1 (127.0.0.1:9092/1: Connection refused). Is it running? "
    "`skyband up` starts one on this machine."
)


class Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_one_broken_connection_is_no_trouble_but_the_loss_of_all_is() -> None:
    reach = KafkaReach("here:1", 30.0)
    reach.note(REFUSED)
    assert reach.trouble is None
    reach.note(DOWN)
    assert reach.trouble == IN_WORDS
    reach.well()
    assert (reach.trouble, reach.detail) == (None, "")


def test_trouble_is_raised_when_it_has_lasted_too_long() -> None:
    time = Time()
    reach = KafkaReach("here:1", 30.0, time)
    reach.check()
    reach.note(DOWN)
    reach.note(REFUSED)
    time.now_s = 130.0
    reach.check()
    reach.note(DOWN)
    time.now_s = 130.1
    with pytest.raises(LogError, match=r"cannot reach Kafka at here:1"):
        reach.check()
    reach.well()
    reach.check()


def test_a_first_connection_that_is_closed_hints_at_a_wrong_protocol_and_a_later_one_does_not() -> None:
    reach = KafkaReach("here:1", 30.0)
    reach.note(DOWN)
    assert "hangs up (1/1 brokers are down), which it does when its listener wants SSL or SASL" in str(reach.trouble)
    reach.well()
    reach.note(DOWN)
    assert "cannot reach Kafka at here:1 (all connections were closed)" in str(reach.trouble)


def test_other_errors_say_nothing_of_the_reach() -> None:
    reach = KafkaReach("here:1", 30.0)
    reach.note(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert (reach.trouble, reach.detail) == (None, "")
