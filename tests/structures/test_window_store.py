"""The window store holds, of every object and stream, exactly the observations since its low tick."""

from random import Random

import numpy as np
import pytest

from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.model.stream import Aggregate
from skyband.structures.question import read_object
from skyband.structures.window_store import WindowStore
from tests.structures.store_model import Given, StoreModel, ask, group_of

ALL = tuple(Aggregate)
IDS = ("", "a", "b", "a\x00", "sensor-1", "sensor-00-north-1", "sensor-00-north-2", "z" * 40)


def bounds_for(group: Group) -> list:
    """Return questions that read every column, each way, also with required streams."""
    names = group.attribute_names
    plain = [ask(group, f"{name}", lowest=low) for name in names for low in (False, True)]
    sums = "+".join(names)
    required = [ask(group, sums, require=(group.streams[-1].name,)), ask(group, sums, require_all=True)]
    return [*plain, ask(group, sums), *required]


def assert_same(model: StoreModel, lows: list[int]) -> None:
    """Assert that the store holds what the model does, and reads it alike from any of these ticks on."""
    model.store._check()
    objects = model.objects()
    assert model.store.objects.live == len(objects)
    assert model.store.entries == len({(key, row.stream, tick) for key, own in objects.items() for tick, row in own})
    assert model.store.expired_rows == model.expired
    assert model.store.newest == model.newest
    assert model.store.rows_applied == model.applied
    for bound in bounds_for(model.group):
        question = model.question(bound)
        values = np.zeros(len(bound.columns))
        for key, own in objects.items():
            slot = model.slot(key)
            for low in lows:
                bits = read_object(model.store.arrays, question, slot, low, values)
                expected = model.read(bound, own, low)
                assert (int(bits), values.tolist() if bits else []) == (expected[0], expected[1] if expected[0] else [])


def some_rows(random: Random, group: Group, now: int, count: int) -> list[Given]:
    """Return rows around `now`, a third of them late by up to ten panes."""
    given = []
    for _ in range(count):
        late = random.choice((0, 0, 1, 3, 10)) * random.randint(0, group.pane_us)
        stream = random.randrange(len(group.streams))
        values = tuple(random.choice((0.0, 0.1, 0.3, 7.5)) for _ in group.streams[stream].attributes)
        given.append((stream, random.choice(IDS), now - late, values))
    return given


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("start", [0, -5_000, 1_700_000_000_000_000, MIN_TIME_US + 1_000, MAX_TIME_US - 20_000])
def test_it_equals_a_list_of_rows_for_every_aggregate(collide: bool, start: int) -> None:
    group = group_of(*ALL, widths=(1, 2, 3, 1, 1, 2, 1))
    random, model = Random(start), StoreModel(group, collide=collide)
    now = start
    model.expire((now - group.retention_us) // group.pane_us)
    for step in range(60):
        now += random.choice((0, 1, group.pane_us, group.pane_us * 30 if step % 20 == 7 else 0))
        low = (now + 1 - group.retention_us) // group.pane_us
        model.expire(low)
        model.apply(some_rows(random, group, now, random.choice((0, 1, 12))))
        assert_same(model, [low, low + 3, now // group.pane_us])
    model.expire(now // group.pane_us + 1)
    assert_same(model, [])
    assert model.store.objects.live == model.store.entries == 0


@pytest.mark.parametrize("by_row", [False, True])
def test_it_equals_a_list_of_rows_where_ticks_are_rows(by_row: bool) -> None:
    group = group_of(Aggregate.LATEST, widths=(2,), by_row=True) if by_row else group_of(*ALL)
    random, model = Random(4), StoreModel(group, in_rows=True)
    model.expire(0)
    for _ in range(60):
        count = random.choice((0, 1, 5, 40))
        model.expire(max(0, model.applied + count - group.retention_rows))
        model.apply(some_rows(random, group, 1_000 * model.applied, count))
        assert_same(model, [model.low, model.low + 3, max(model.low, model.applied - 1)])
    assert model.expired > 0  # more rows at once than the retention holds


@pytest.mark.parametrize("aggregate", [Aggregate.BEST, Aggregate.COUNT])
def test_a_record_that_is_an_object_keeps_its_own_values_and_event_time(aggregate: Aggregate) -> None:
    group = group_of(aggregate, widths=(2,), by_row=True)
    random, model = Random(5), StoreModel(group)
    model.expire(-8)
    for now in range(0, 600, 7):
        model.expire((now + 1 - group.retention_us) // group.pane_us)
        model.apply(some_rows(random, group, now, random.choice((0, 1, 6))))
        assert_same(model, [model.low, now // group.pane_us])
        rows = {model.slot(key): own[0][1] for key, own in model.objects().items()}
        times = model.store.event_times(np.array(list(rows), np.int32))
        assert times.tolist() == [row.event for row in rows.values()]


def test_a_late_row_finds_its_place_in_a_long_chain() -> None:
    group = group_of(Aggregate.LATEST, Aggregate.FIRST, pane_us=1, panes=4_000)
    model = StoreModel(group)
    model.expire(0)
    times = list(range(2_000))
    Random(6).shuffle(times)
    for first in range(0, 2_000, 250):
        model.apply([(i % 2, "a", time, (float(time % 7),)) for i, time in enumerate(times[first : first + 250])])
        model.store._check()
    model.expire(900)
    assert_same(model, [900, 901, 1_999])
    assert model.store.arrays.chains[model.slot("a"), 0, 3] >= 900


def test_memory_is_used_again() -> None:
    group = group_of(Aggregate.BEST, Aggregate.SUM, pane_us=1, panes=16)
    model = StoreModel(group)
    sizes = []
    for now in range(3_000):
        model.expire(now - 15)
        model.apply([(now % 2, f"object-{(now + j) % 97}", now - j, (1.0,)) for j in range(3)])
        model.store.forget_changes()
        sizes.append(model.store.state_bytes)
    model.store._check()
    assert model.store.objects.top < 97
    assert sizes[-1] <= sizes[200]


def test_rows_older_than_the_low_tick_are_counted_and_dropped() -> None:
    model = StoreModel(group_of(Aggregate.SUM))
    model.expire(5)
    model.apply([(0, "a", 49, (1.0,)), (0, "b", 50, (2.0,)), (0, "c", -1, (3.0,))])
    assert_same(model, [5])
    assert (model.store.expired_rows, model.store.objects.live) == (2, 1)


def test_expiry_over_years_does_not_step() -> None:
    model = StoreModel(group_of(Aggregate.SUM, pane_us=1))
    model.expire(0)
    model.apply([(0, "a", 3, (1.0,))])
    for low in (10**14, 2 * 10**14, 2**61):
        model.expire(low)
        model.apply([(0, "b", low + 1, (1.0,))])
        assert_same(model, [low])


def test_going_back_is_no_expiry() -> None:
    model = StoreModel(group_of(Aggregate.SUM))
    model.expire(5)
    model.apply([(0, "a", 50, (1.0,))])
    model.store.expire(3)
    assert_same(model, [5])


def test_changes_name_every_object_that_rows_were_applied_to() -> None:
    random, model = Random(7), StoreModel(group_of(Aggregate.BEST, Aggregate.SUM))
    model.expire(0)
    for _ in range(20):
        given = some_rows(random, model.group, 300, 90)
        model.apply(given)
        assert set(model.store.changes) == {model.slot(key) for key in {row[1] for row in given}}
        model.store.forget_changes()
        assert len(model.store.changes) == 0


@pytest.mark.parametrize(
    ("times", "broken"),
    [
        ([0, 30], 0),  # as promised
        ([0, 29], 1),
        ([0, 5], 1),  # in one pane
        ([30, 0], 0),  # late, as promised
        ([0, 60, 31], 1),  # late, too near the one after
        ([0, 60, 29], 1),  # late, too near the one before
        ([0, 60, 30], 0),
        ([0, 20, 40], 2),
    ],
)
@pytest.mark.parametrize("aggregate", ALL)
def test_broken_promises_are_counted(aggregate: Aggregate, times: list[int], broken: int) -> None:
    model = StoreModel(group_of(aggregate, pane_us=10, repeat_after_us=30))
    model.expire(0)
    model.apply([(0, "a", time, (1.0,)) for time in times] + [(0, "other", 15, (1.0,))])
    assert model.store.broken_promises == broken


def test_a_promise_never_to_repeat_is_watched_as_far_as_the_store_reaches() -> None:
    model = StoreModel(group_of(Aggregate.BEST, repeat_after_us=MAX_TIME_US))
    model.expire(0)
    model.apply([(0, "a", 0, (1.0,)), (0, "a", 79, (1.0,))])
    assert model.store.broken_promises == 1
    model.expire(9)
    model.apply([(0, "a", 90, (1.0,))])
    assert model.store.broken_promises == 1


@pytest.mark.parametrize("in_rows", [False, True])
def test_rows_passed_by_are_counted_and_not_kept(in_rows: bool) -> None:
    group = group_of(Aggregate.BEST)
    random = Random(5)
    model, other = StoreModel(group, in_rows=in_rows), WindowStore(group, in_rows=in_rows)
    for step in range(20):
        now = step * group.pane_us
        low = model.applied + 2 if in_rows else step - 4
        rows = some_rows(random, group, now, 7)
        model.expire(low)
        model.apply(rows)
        other.expire(low)
        other.pass_by(model._columns(rows), 0, len(rows))
    assert model.expired > 0
    emptied = model.store.emptied()
    for store in (other, emptied):
        assert (store.newest, store.rows_applied, store.expired_rows) == (model.newest, model.applied, model.expired)
        assert (store.entries, store.objects.live) == (0, 0)
        store._check()
