"""Whether Skyband's topics are what they should be, and what is known of clocks."""

import pytest

from services.doctor.checks_kafka import check_clocks, check_topics
from services.doctor.facts import TopicFacts
from services.doctor.finding import Finding, Level

S = 1_000_000
GOOD = TopicFacts("catalog", 1, "compact", 1, "compact")


def only(found: list[Finding]) -> Finding:
    (one,) = found
    return one


def test_topics_that_are_as_they_should_be_are_one_finding() -> None:
    found = only(list(check_topics([GOOD, TopicFacts("results", 6, "delete", 6, "delete")])))
    assert (found.level, found.text) == (Level.OK, "2 topics of Skyband's are as they should be")


@pytest.mark.parametrize(
    ("topics", "said", "do"),
    [
        (
            [TopicFacts("catalog", None, "", 1, "compact")],
            "there is no topic of Skyband's: it has never run on this Kafka",
            "skyband serve, or skyband up",
        ),
        ([GOOD, TopicFacts("marks", None, "", 8, "compact")], "topics are missing: marks", "restart a service"),
        (
            [GOOD, TopicFacts("partials", 1, "delete", 8, "delete")],
            "topic partials has 1 partition, not 8",
            "make it anew with as many",
        ),
        (
            [GOOD, TopicFacts("marks", 8, "delete", 8, "compact")],
            "topic marks has cleanup.policy delete, not compact",
            "kafka-configs --alter --topic marks",
        ),
    ],
)
def test_what_differs_is_wrong(topics: list[TopicFacts], said: str, do: str) -> None:
    found = only(list(check_topics(topics)))
    assert (found.level, found.text) == (Level.WRONG, said)
    assert do in found.do


@pytest.mark.parametrize(
    ("newest_s", "level", "said"),
    [
        (None, Level.NOTE, "clocks are not compared: no service has reported in the last hour"),
        (130, Level.WRONG, "a service's clock is 30 s ahead of this machine's"),
        (99, Level.OK, "clocks of services and of this machine agree to within some seconds"),
        (10, Level.NOTE, "clocks are not compared: the newest report is 90 s old"),
    ],
)
def test_clocks_are_compared_by_the_newest_report(newest_s: int | None, level: Level, said: str) -> None:
    found = only(list(check_clocks(None if newest_s is None else newest_s * S, 100 * S)))
    assert (found.level, found.text) == (level, said)
