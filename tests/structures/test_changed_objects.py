"""The set of changed objects: those of applied rows, and those with an entry in ticks that leave."""

from random import Random

import pytest

from skyband.model.stream import Aggregate
from skyband.structures.changed_objects import ChangedObjects
from tests.structures.store_model import StoreModel, group_of
from tests.structures.test_window_store import some_rows


@pytest.mark.parametrize("by_row", [False, True])
def test_it_equals_a_plain_set(by_row: bool) -> None:
    group = group_of(Aggregate.BEST, widths=(2,), by_row=True) if by_row else group_of(Aggregate.BEST, Aggregate.SUM)
    random, model = Random(1), StoreModel(group)
    changed, seen, expected = ChangedObjects(model.store), 0, set[int]()
    now = 0
    model.expire(-8)
    for step in range(400):
        action = random.randrange(6)
        if action <= 1:
            now += random.randint(0, 15)
            model.expire((now + 1 - group.retention_us) // group.pane_us)
            model.apply(some_rows(random, group, now, random.choice((1, 7, 40 if step % 7 == 0 else 0))))
        elif action == 2:
            changed.add_changes()
            expected |= set(model.store.changes[seen:].tolist())
            seen = len(model.store.changes)
        elif action == 3:
            low, high = sorted((random.randint(-20, now // 10 + 20), random.randint(-20, now // 10 + 20)))
            changed.add_ticks(low, high)
            expected |= {model.slot(key) for key, own in model.objects().items() for t, _ in own if low <= t < high}
        elif action == 4 and random.random() < 0.3:
            changed.add_changes()
            expected |= set(model.store.changes[seen:].tolist())
            model.store.forget_changes()
            changed.changes_forgotten()
            seen = 0
        elif action == 5:
            if random.random() < 0.3:
                changed.add_all()
                expected |= {model.slot(key) for key in model.objects()}
            elif random.random() < 0.5:
                changed.clear()
                expected.clear()
        changed._check()
        assert set(changed.slots[: changed.count].tolist()) == expected
        assert len(changed.slots[: changed.count]) == len(expected)


def test_everything_alive_is_changed_at_first() -> None:
    model = StoreModel(group_of(Aggregate.BEST))
    model.expire(0)
    model.apply([(0, name, 5, (1.0,)) for name in "abc"] + [(0, "d", 55, (1.0,))])
    model.expire(3)
    changed = ChangedObjects(model.store)
    assert changed.slots[: changed.count].tolist() == [model.slot("d")]


def test_ticks_of_ages_ago_and_ages_to_come_do_not_step() -> None:
    model = StoreModel(group_of(Aggregate.BEST))
    model.expire(0)
    model.apply([(0, "a", 5, (1.0,))])
    changed = ChangedObjects(model.store)
    changed.clear()
    changed.add_ticks(-(2**62), 2**62)
    assert changed.count == 1
