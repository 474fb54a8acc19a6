"""Progress as told by others, and what of it this replica may tell."""

from collections.abc import Mapping

from skyband.fanout.progress_board import ProgressBoard
from skyband.log.memory import MemoryLog
from skyband.model.partials import MergeProgress
from tests.fanout.place import new_log, send

GENERATIONS = {"g": 1}


class Lagging:
    """A tail that is so many offsets behind."""

    read_to = 0

    def has_read(self, offsets: Mapping[int, int]) -> bool:
        return self.read_to >= offsets[0]


def tell(log: MemoryLog, frontier_us: int, generation: int = 1) -> None:
    send(log, "progress", MergeProgress("g", generation, frontier_us, {0: frontier_us}))


def test_a_replica_that_always_lags_tells_progress_all_the_same() -> None:
    log, tail = new_log(), Lagging()
    board = ProgressBoard(log)
    told = []
    for frontier_us in range(10, 100, 10):
        tell(log, frontier_us)
        tail.read_to = frontier_us - 15
        told += board.poll(GENERATIONS, tail.has_read).values()
        assert sum(map(len, board._waiting.values())) <= 2
    assert told == [10, 30, 50, 70]
    assert board.reached(("g", 1)) == 70


def test_progress_of_before_of_other_generations_and_of_who_has_fallen_back_says_nothing() -> None:
    log, tail = new_log(), Lagging()
    tail.read_to = 1_000
    tell(log, 10)
    board = ProgressBoard(log)
    tell(log, 20, generation=2)
    assert board.poll(GENERATIONS, tail.has_read) == {}
    for frontier_us, found in ((50, {"g": 50}), (40, {}), (60, {"g": 60})):
        tell(log, frontier_us)
        assert board.poll(GENERATIONS, tail.has_read) == found
    assert board.poll({"g": 2}, tail.has_read) == {}
    assert board.reached(("g", 1)) is None
