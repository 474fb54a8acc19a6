"""Sorted lists are what sorting all objects by each of their numbers gives, whatever comes, moves and goes."""

from random import Random

import numpy as np
import pytest

from skyband.structures.sorted_list import SortedLists


class Tried:
    """Lists beside a plain dictionary of what must stand in them: slot → list → key."""

    def __init__(self, count: int, block: int) -> None:
        self.count = count
        self.lists = SortedLists(count, block=block)
        self.model: dict[int, dict[int, float]] = {}

    def place(self, slot: int, keys: dict[int, float]) -> None:
        row = np.array([keys.get(c, 7.0) for c in range(self.count)])
        self.lists.place(slot, sum(1 << c for c in keys), row)
        self.model[slot] = keys

    def check(self) -> None:
        self.lists._check()
        assert self.lists.entries == sum(map(len, self.model.values()))
        for c in range(self.count):
            keys, slots = self.lists.read(c)
            expected = sorted((own[c], slot) for slot, own in self.model.items() if c in own)
            assert list(zip(keys.tolist(), slots.tolist(), strict=True)) == expected

    @property
    def blocks(self) -> int:
        return int(self.lists.arrays.blocks.sum())


@pytest.mark.parametrize("block", [2, 4, 5, 128])
@pytest.mark.parametrize("values", [3, 1_000_000])
def test_lists_are_sorted_by_key_and_then_by_slot(block: int, values: int) -> None:
    random, tried = Random(block), Tried(3, block)
    for step in range(1_500):
        slot = random.randrange(200)
        stays = random.random() < (0.9 if step % 500 < 300 else 0.1)
        keys = {c: float(random.randrange(values)) for c in range(3) if stays and random.random() < 0.7}
        if random.random() < 0.2:
            keys = dict(tried.model.get(slot, {}))
        tried.place(slot, keys)
        if step % 10 == 0:
            tried.check()
    tried.check()
    for slot in list(tried.model):
        tried.place(slot, {})
    tried.check()
    assert tried.blocks == 0


def test_ascending_and_descending_keys_fill_blocks_at_least_half() -> None:
    for sign in (1.0, -1.0):
        tried = Tried(1, 8)
        for slot in range(1_000):
            tried.place(slot, {0: sign * slot})
        tried.check()
        assert tried.blocks <= 1_000 / 4 + 1


def test_blocks_that_run_empty_are_joined() -> None:
    tried = Tried(1, 8)
    for slot in range(1_000):
        tried.place(slot, {0: float(slot * 7_919 % 1_000)})
    before = tried.blocks
    for slot in range(1_000):
        if slot * 7_919 % 10:
            tried.place(slot, {})
    tried.check()
    assert before > 125
    assert tried.blocks < 100


def test_infinite_keys_stand_at_the_ends() -> None:
    tried = Tried(1, 4)
    for slot, key in enumerate((np.inf, 1.0, -np.inf, 0.0, -np.inf, np.inf, 2.0)):
        tried.place(slot, {0: key})
    tried.check()
    assert tried.lists.read(0)[1].tolist() == [2, 4, 3, 1, 6, 0, 5]


def test_zeros_of_both_signs_are_equal() -> None:
    tried = Tried(1, 4)
    for slot, key in enumerate((0.0, -0.0, 0.0)):
        tried.place(slot, {0: key})
    tried.place(1, {0: 0.0})
    tried.check()
    assert tried.lists.read(0)[1].tolist() == [0, 1, 2]


def test_slots_may_come_in_any_order() -> None:
    tried = Tried(2, 4)
    for slot in (5_000, 3, 40_000, 0):
        tried.place(slot, {0: 1.0, 1: -float(slot)})
    tried.check()
    assert tried.lists.state_bytes > 40_000 * 8 * 2
