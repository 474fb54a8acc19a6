"""Members of a group on a real Kafka: partitions move, new ones are found, and work is neither lost nor redone."""

import random
import time
from collections.abc import Callable, Sequence

import pytest

from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from skyband.errors import LogError
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Committed, Position
from tests.kafka.logs import Reader, delete_topic, grow_topic, log_at, moments

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka: EmbeddedKafka, topic_name: str) -> KafkaLog:
    log = log_at(kafka.bootstrap)
    log.create_topic(topic_name, 4)
    return log


def poll_until(readers: Sequence[Reader], is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    for _ in moments(seconds):
        for reader in readers:
            reader.poll()
        if is_so():
            return


def partitions(*readers: Reader) -> list[int]:
    return [len(reader.held) for reader in readers]


def test_members_share_partitions_and_leave_theirs_to_the_others(log: KafkaLog, topic_name: str) -> None:
    first = Reader(log, topic_name, [topic_name])
    poll_until([first], lambda: partitions(first) == [4])
    kept = set(first.held)
    second = Reader(log, topic_name, [topic_name])
    poll_until([first, second], lambda: partitions(first, second) == [2, 2])
    assert first.held < kept
    second.leave([first])
    poll_until([first], lambda: partitions(first) == [4])
    first.leave()


@pytest.mark.slow
def test_with_members_coming_and_going_all_is_read_once(log: KafkaLog, topic_name: str) -> None:
    chance = random.Random(7)
    producer = log.producer()
    members = [Reader(log, topic_name, [topic_name])]
    everyone = list(members)
    sent = 0

    def go_on(rounds: int) -> None:
        nonlocal sent
        for _ in range(rounds):
            for _ in range(chance.randrange(20)):
                producer.send(topic_name, chance.randrange(4), sent)
                sent += 1
            members[chance.randrange(len(members))].poll(0.02, most=chance.randrange(1, 30))

    for change in ("join", "join", "leave", "join", "leave", "join"):
        poll_until(members, lambda: sum(partitions(*members)) == 4)
        go_on(20)
        if change == "join":
            members.append(Reader(log, topic_name, [topic_name]))
            everyone.append(members[-1])
        else:
            members.pop(0).leave(members)
        go_on(20)
    producer.flush()
    poll_until(members, lambda: sum(len(reader.seen) for reader in everyone) >= sent)
    seen = [value for reader in everyone for value in reader.seen]
    assert sorted(seen) == list(range(sent))  # type: ignore[type-var]
    assert not any(reader.lost for reader in everyone)
    while members:
        members.pop().leave(members)


@pytest.mark.slow
def test_new_partitions_are_found_within_5_seconds(log: KafkaLog, topic_name: str, kafka: EmbeddedKafka) -> None:
    reader = Reader(log, topic_name, [topic_name])
    poll_until([reader], lambda: partitions(reader) == [4])
    grow_topic(kafka.bootstrap, topic_name, 6)
    began = time.monotonic()
    producer = log.producer()
    producer.send(topic_name, 5, "new")
    producer.flush()
    poll_until([reader], lambda: reader.seen == ["new"])
    # By default librdkafka looks every 5 minutes. The other seconds are for the members to agree, and busy machines.
    assert log.settings.metadata_refresh_s == 3.0
    assert time.monotonic() - began < 10.0
    assert partitions(reader) == [6]
    reader.leave()


def test_a_topic_of_a_subscription_must_exist_and_the_consumer_have_a_group(log: KafkaLog, topic_name: str) -> None:
    with pytest.raises(LogError, match=f"topic '{topic_name}x' does not exist; create it before"):
        Reader(log, topic_name, [topic_name, topic_name + "x"])
    reader = Reader(log, topic_name, [topic_name])
    with pytest.raises(LogError, match="without a group cannot share partitions"):
        log.consumer().subscribe([topic_name], reader)
    reader.leave()


@pytest.mark.slow
def test_a_subscribed_topic_that_is_deleted_is_lost_and_named(
    log: KafkaLog, topic_name: str, kafka: EmbeddedKafka
) -> None:
    reader = Reader(log, topic_name, [topic_name])
    poll_until([reader], lambda: partitions(reader) == [4])
    delete_topic(kafka.bootstrap, topic_name)
    with pytest.raises(LogError, match=f"topic '{topic_name}' was deleted while it was read"):
        poll_until([reader], lambda: False)
    reader.consumer.close()


def test_a_member_that_cannot_take_its_partitions_fails_and_leaves_them_to_others(
    log: KafkaLog, topic_name: str
) -> None:
    class Broken(Reader):
        def on_assigned(self, positions: Sequence[Position]) -> dict[Position, int]:
            raise LogError("the checkpoint is damaged")

    broken = Broken(log, topic_name, [topic_name])
    with pytest.raises(LogError, match="the checkpoint is damaged"):
        poll_until([broken], lambda: False)
    with pytest.raises(LogError, match="this member could not take its partitions: the checkpoint is damaged"):
        poll_until([broken], lambda: False)
    broken.consumer.close()
    reader = Reader(log, topic_name, [topic_name])
    poll_until([reader], lambda: partitions(reader) == [4])
    reader.leave()


@pytest.mark.slow
def test_a_member_that_was_away_too_long_learns_it_and_may_not_commit(kafka: EmbeddedKafka, topic_name: str) -> None:
    hasty = log_at(
        kafka.bootstrap, max_poll_interval_s=6.0, extra={"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
    )
    hasty.create_topic(topic_name, 2)
    producer = hasty.producer()
    producer.send(topic_name, 0, "a")
    producer.flush()
    at = Position(topic_name, 0)
    away = Reader(hasty, topic_name, [topic_name])
    poll_until([away], lambda: away.seen == ["a"])
    other = Reader(hasty, topic_name, [topic_name])
    poll_until([other], lambda: partitions(other) == [2])
    assert other.seen == ["a"]
    with pytest.raises(CommitRefusedError, match=f"group '{topic_name}' shares its partitions out anew, so this mem"):
        away.consumer.commit({at: 1})
    assert other.consumer.committed([at]) == {}
    with pytest.raises(LogError, match="has not polled for so long that its partitions went to others"):
        poll_until([away], lambda: False)
    assert Position(topic_name, 0) in away.lost
    away.consumer.close()
    other.leave()
    assert hasty.consumer(topic_name).committed([at]) == {at: Committed(1)}


def test_who_has_a_stable_name_comes_back_to_its_partitions_and_shuts_its_double_out(
    kafka: EmbeddedKafka, topic_name: str
) -> None:
    left, right = (log_at(kafka.bootstrap, member=name) for name in ("left", "right"))
    left.create_topic(topic_name, 4)
    first, second = Reader(left, topic_name, [topic_name]), Reader(right, topic_name, [topic_name])
    poll_until([first, second], lambda: partitions(first, second) == [2, 2])
    held, of_second = set(first.held), set(second.held)
    first.leave()
    again = Reader(left, topic_name, [topic_name])
    poll_until([again, second], lambda: again.held == held)
    assert second.held == of_second
    double = Reader(left, topic_name, [topic_name])
    with pytest.raises(LogError, match=f"another process has the member name 'left' in group '{topic_name}'"):
        poll_until([double, again], lambda: False)
    for reader in (double, again, second):
        reader.consumer.close()
