"""Messages on their way to a log that may be full."""

from skyband.align.outbox import Outbox
from tests.align.fake_log import FakeLog, FakeProducer


class Draining(FakeProducer):
    """A producer whose flush makes room for two, so often."""

    flushes = 2

    def flush(self) -> None:
        super().flush()
        if self.flushes:
            self.flushes -= 1
            self.log.room = 2


def filled(producer: FakeProducer) -> Outbox:
    """Return an outbox with five messages."""
    outbox = Outbox(producer)
    for number in range(5):
        outbox.put("topic", 0, b"", number)
    return outbox


def test_messages_leave_in_order_as_the_log_takes_them() -> None:
    log = FakeLog({"topic": 1}, room=2)
    outbox = filled(FakeProducer(log))
    assert (outbox.send(0), len(outbox), outbox.peak) == (False, 3, 5)
    log.room = 9
    assert (outbox.send(0), len(outbox), outbox.peak) == (True, 0, 5)
    assert log.values("topic", 0) == [0, 1, 2, 3, 4]


def test_storing_flushes_as_long_as_that_makes_room_and_once_more_at_the_end() -> None:
    log = FakeLog({"topic": 1}, room=1)
    assert filled(Draining(log)).store(0)
    assert log.values("topic", 0) == [0, 1, 2, 3, 4]
    assert log.journal[-1] == "flush"


def test_storing_gives_up_when_flushing_makes_no_room() -> None:
    log = FakeLog({"topic": 1}, room=3)
    outbox = filled(FakeProducer(log))
    assert (outbox.store(0), len(outbox)) == (False, 2)
