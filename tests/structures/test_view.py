"""The view shows the best objects by current score, whatever rises and falls, and scans all only when it must."""

from random import Random
from typing import Any

import pytest

from skyband.model.binding import BoundQuery
from skyband.model.group import Group
from skyband.model.stream import Aggregate
from skyband.structures.view import View
from tests.structures.store_model import Given, StoreModel, ask, group_of

UNSTEADY = group_of(Aggregate.LATEST, Aggregate.FIRST, Aggregate.SUM, Aggregate.MIN, Aggregate.BEST)
CASES = {
    "latest": ask(UNSTEADY, "a"),
    "a falling sum": ask(UNSTEADY, "a - c"),
    "all columns": ask(UNSTEADY, "a + b - c + d + e"),
    "lowest": ask(UNSTEADY, "a + b - c + d + e", lowest=True),
    "required": ask(UNSTEADY, "a + c", require=("b",)),
    "not always finite": ask(UNSTEADY, "1 / c + exp(c)"),
}


class Tried:
    """A view over a store, compared with the model after every refresh."""

    def __init__(self, group: Group, bound: BoundQuery, **more: Any) -> None:
        self.model = StoreModel(group, **more)
        self.bound = bound
        self.view = View(self.model.store, self.model.question(bound), bound.score.stack_size)

    def expire(self, low: int) -> None:
        """Let ticks leave the store, as a shard does."""
        self.view.leave_ticks(low)
        self.model.expire(low)

    def refresh(self, k: int, low: int) -> None:
        self.view.refresh(k, low)
        self.view._check()
        at = self.view.members
        got = [(int(at.slot[i]), at.rank[i], int(at.present[i]), at.values[i].tolist()) for i in range(self.view.count)]
        ranked = self.model.ranked(self.bound, low)
        expected = [(self.model.slot(key), rank, bits, values) for key, rank, bits, values in ranked]
        assert self.view.count >= min(k, len(expected))
        assert got == expected[: self.view.count]


def some_rows(random: Random, group: Group, now: int, count: int, ids: int) -> list[Given]:
    given = []
    for _ in range(count):
        stream = random.randrange(len(group.streams))
        late = random.choice((0, 0, 0, 1, 4)) * random.randint(0, group.pane_us)
        values = tuple(random.choice((0.0, 1.0, 1.0, 2.0, 5.0, 900.0)) for _ in group.streams[stream].attributes)
        given.append((stream, f"sensor-00-north-{random.randrange(ids)}", now - late, values))
    return given


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ids", [5, 300])
def test_it_shows_the_best_of_all_objects(name: str, ids: int) -> None:
    random, tried = Random(ids), Tried(UNSTEADY, CASES[name])
    now, size = 0, random.choice((1, 3, 8))
    tried.expire(-8)
    for _ in range(60):
        now += random.choice((0, 1, 7, 10, 10, 35))
        tried.expire((now + 1 - UNSTEADY.retention_us) // 10)
        tried.model.apply(some_rows(random, UNSTEADY, now, random.choice((0, 2, 9, 200)), ids))
        if random.random() < 0.7:
            tried.refresh(random.choice((1, 3, 10)), now // 10 + 1 - size)
    if name == "not always finite":
        assert tried.view.not_finite > 0


@pytest.mark.parametrize("by_row", [False, True])
def test_it_shows_the_best_where_ticks_are_rows(by_row: bool) -> None:
    group = group_of(Aggregate.LATEST, widths=(2,), by_row=True) if by_row else UNSTEADY
    random = Random(3)
    tried = Tried(group, ask(group, "a0 - a1") if by_row else CASES["all columns"], in_rows=True)
    tried.expire(0)
    for step in range(80):
        count = random.choice((0, 1, 5, 20))
        tried.expire(max(0, tried.model.applied + count - group.retention_rows))
        tried.model.apply(some_rows(random, group, 10 * step, count, 9))
        tried.refresh(random.choice((1, 3, 10)), max(tried.model.low, tried.model.applied - 25))


def filled(count: int, *, value: float = 0.0, step: float = 1.0) -> Tried:
    """Return a view of k = 3 over `count` objects o000, o001, …, each `step` better than the one before."""
    group = group_of(Aggregate.LATEST, panes=1_000)
    tried = Tried(group, ask(group, "a"))
    tried.expire(0)
    tried.model.apply([(0, f"o{i:03}", 5, (value + step * i,)) for i in range(count)])
    tried.refresh(3, 0)
    return tried


def test_it_keeps_all_objects_without_a_bound_while_there_is_room() -> None:
    tried = filled(67)
    assert (tried.view.count, tried.view.refills) == (67, 0)
    assert not tried.view._bound.exists[0]


def test_overflow_makes_the_best_that_left_the_bound() -> None:
    tried = filled(200)
    assert (tried.view.count, tried.view.refills) == (67, 0)
    assert (tried.view._bound.rank[0], tried.view._bound.id_bytes.tobytes()) == (132.0, b"o132")
    # One below the bound stays outside, one above enters, a member that falls below it leaves.
    tried.model.apply([(0, "o000", 15, (131.5,)), (0, "o001", 15, (132.5,)), (0, "o199", 15, (131.0,))])
    tried.refresh(3, 0)
    assert (tried.view.count, tried.view.refills) == (67, 0)


def test_equal_scores_pass_the_bound_by_id() -> None:
    tried = filled(200, value=5.0, step=0.0)
    assert tried.view._bound.id_bytes.tobytes() == b"o067"
    # What ties with the bound enters only with a smaller id: o0 before o067, o068 and o067\0 behind it.
    rows = [(0, name, 15, (5.0,)) for name in ("o0", "o068", "o067\0", "o066\0", "o06", "o066")]
    tried.model.apply(rows)
    tried.refresh(3, 0)
    assert (tried.view.count, tried.view.refills) == (67, 0)
    assert tried.view._bound.id_bytes.tobytes() == b"o065"


def test_long_ids_that_share_a_beginning_pass_the_bound_by_their_end() -> None:
    group = group_of(Aggregate.LATEST, panes=1_000)
    tried = Tried(group, ask(group, "a"))
    tried.expire(0)
    names = [f"sensor-00-north-{i:03}" for i in range(100)]
    tried.model.apply([(0, name, 5, (1.0,)) for name in names])
    tried.refresh(3, 0)
    assert tried.view._bound.id_bytes.tobytes() == b"sensor-00-north-067"
    more = [
        "sensor-00-north-067",
        "sensor-00-north-06",
        "sensor-00-north-0671",
        "sensor-00-north-066z",
        "sensor-00-nor",
    ]
    tried.model.apply([(0, name, 15, (1.0,)) for name in more])
    tried.refresh(3, 0)


def test_the_bound_outlives_the_object_that_it_came_from() -> None:
    tried = filled(200)
    dead = tried.model.slot("o132")
    tried.model.apply([(0, f"o{i:03}", 1_000, (float(i),)) for i in range(200) if i != 132])
    tried.expire(50)
    tried.refresh(3, 50)
    assert tried.model.slot("o132") == -1
    tried.model.apply([(0, "new", 1_010, (500.0,))])
    assert tried.model.slot("new") == dead
    tried.refresh(3, 50)
    assert (tried.view.refills, tried.view._bound.rank[0]) == (0, 133.0)


def test_fewer_than_k_members_cost_one_scan() -> None:
    tried = filled(200)
    tried.model.apply([(0, f"o{i:03}", 15, (0.0,)) for i in range(135, 200)])
    tried.refresh(3, 0)
    assert tried.view.refills == 1
    assert tried.view.count == 134
    tried.refresh(3, 0)
    assert tried.view.refills == 1


def test_no_scan_finds_more_objects_than_there_are() -> None:
    tried = filled(200)
    tried.model.apply([(0, "o199", 1_005, (1.0,))])
    tried.expire(100)
    for _ in range(3):
        tried.refresh(3, 100)
    assert (tried.view.count, tried.view.refills) == (1, 1)
    assert not tried.view._bound.exists[0]


def test_a_larger_k_than_members_scans_and_shows_all() -> None:
    tried = filled(200)
    tried.refresh(150, 0)
    assert (tried.view.count, tried.view.refills) == (200, 1)
    tried.refresh(1_000_000, 0)
    assert tried.view.count == 200


def falling(tried: Tried, evaluations: int, every: int) -> list[int]:
    """Let all members fall to the bottom every so many evaluations; return the room after each scan."""
    rooms, now = [], 15
    for i in range(evaluations):
        now += 1
        if i % every == 0:
            members = tried.view.members.slot[: tried.view.count].tolist()
            names = [key for key in tried.model.objects() if tried.model.slot(key) in members]
            tried.model.apply([(0, name, now, (-0.0,)) for name in names])
        before = tried.view.refills
        tried.refresh(3, 0)
        if tried.view.refills > before:
            rooms.append(tried.view._room)
    return rooms


def test_scans_that_come_often_make_the_view_grow_up_to_all_objects() -> None:
    tried = filled(500)
    rooms = falling(tried, 12, every=2)
    assert rooms == sorted(rooms)
    assert rooms[0] == 2 * 67
    assert rooms[-1] == 500
    assert tried.view.refills < 6  # once it holds all objects there is nothing to scan for


def test_scans_that_come_seldom_leave_its_size() -> None:
    tried = filled(500)
    for _ in range(16):
        tried.refresh(3, 0)
    assert set(falling(tried, 60, every=20)) == {67}


def test_a_window_may_go_back_as_far_as_the_store_reaches() -> None:
    group = group_of(Aggregate.SUM, panes=10)
    tried = Tried(group, ask(group, "a"))
    tried.expire(0)
    tried.model.apply([(0, name, time, (1.0 + time,)) for time in range(0, 100, 7) for name in ("a", f"o{time}")])
    for low in (0, 3, 2, 9, 0, 1):
        tried.refresh(3, low)


def test_an_object_whose_entries_leave_unseen_is_gone() -> None:
    group = group_of(Aggregate.SUM, panes=4)
    tried = Tried(group, ask(group, "a"))
    tried.expire(0)
    tried.model.apply([(0, "a", 5, (9.0,)), (0, "b", 25, (3.0,)), (0, "a", 25, (1.0,))])
    tried.refresh(3, 0)
    for low in (1, 2, 40):  # many panes leave between two evaluations
        tried.expire(low)
    tried.model.apply([(0, "c", 405, (1.0,))])
    tried.refresh(3, 40)
    assert tried.view.count == 1


def test_an_empty_store_has_an_empty_view() -> None:
    tried = Tried(UNSTEADY, CASES["latest"])
    tried.refresh(5, 0)
    assert tried.view.count == 0
