"""Which partitions are paused, on a log that forgets pauses with a partition and on one that does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.align.pauses import Pauses
from skyband.log.record_log import Position
from tests.align.fake_log import FakeConsumer, FakeLog

PLACES = [Position("temperatures", partition) for partition in range(4)]


@pytest.mark.parametrize("forgets", [False, True])
@given(data=st.data())
@settings(max_examples=50)
def test_whatever_comes_and_goes_exactly_the_wanted_ones_are_paused(forgets: bool, data: st.DataObject) -> None:
    consumer = FakeConsumer(FakeLog({}))
    pauses = Pauses(consumer)
    for _ in range(data.draw(st.integers(1, 12))):
        come = data.draw(st.sets(st.sampled_from(PLACES))) - consumer.cursors.keys()
        pauses.add(come)
        consumer.cursors.update(dict.fromkeys(come, 0))
        wanted = {place for place in consumer.cursors if data.draw(st.booleans())}
        pauses.become(wanted)
        assert consumer.paused & consumer.cursors.keys() == wanted
        gone = {place for place in consumer.cursors if data.draw(st.booleans())}
        lost = data.draw(st.booleans())
        if lost:
            consumer.cursors = {place: 0 for place in consumer.cursors if place not in gone}
        pauses.remove(gone, lost=lost)
        consumer.cursors = {place: 0 for place in consumer.cursors if place not in gone}
        if forgets:
            consumer.paused -= gone


def test_nothing_is_said_to_the_consumer_while_nothing_changes() -> None:
    calls: list[str] = []

    class Counting(FakeConsumer):
        def pause(self, positions: object) -> None:
            calls.append("pause")

        def resume(self, positions: object) -> None:
            calls.append("resume")

    pauses = Pauses(Counting(FakeLog({})))
    for _ in range(3):
        pauses.become({PLACES[0]})
    assert calls == ["pause"]
