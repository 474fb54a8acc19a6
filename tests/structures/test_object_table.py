"""The object table finds what lives, forgets what died, and orders ids as their bytes do."""

from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from skyband.structures.object_table import (
    ObjectTable,
    add_object,
    find_object,
    id_before,
    remove_object,
    seek_hash,
    seek_object,
)

STEMS = (b"", b"sensor-", b"sensor-00-nort", b"sensor-00-north-")


def as_array(id_bytes: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(id_bytes, np.uint8)


def an_id(random: Random) -> bytes:
    """Return an id of 0 to 40 bytes: many share their first 7, 14 or 16, some end in zeros."""
    stem = random.choice(STEMS)
    rest = bytes(random.choice(b"\0\0a\xffz") for _ in range(random.choice((0, 1, 2, 7, 8, 24))))
    return stem + rest


def add(table: ObjectTable, tag: int, array: np.ndarray, start: int) -> int:
    """Add the id array[start:]; return its slot."""
    arrays, gap = table.arrays, -1
    if table.indexed:
        gap = int(seek_object(arrays, tag & (len(arrays.table) - 1), tag, array, start, len(array)))
    return int(add_object(arrays, tag, array, start, len(array), gap))


class Model:
    """A table, and the ids that it must hold."""

    def __init__(self, *, indexed: bool = True, hashes: int = 3) -> None:
        self.table = ObjectTable(indexed=indexed, capacity=4)
        self.hashes = hashes
        self.live: dict[int, tuple[bytes, int]] = {}
        self.most = 0

    def tag(self, id_bytes: bytes) -> int:
        """Return a hash: one of few, so that many ids collide, also around the end of the index and below zero."""
        return (sum(id_bytes) + len(id_bytes)) % self.hashes - 2

    def find(self, id_bytes: bytes) -> int:
        array = as_array(b"#" + id_bytes + b"#")
        return int(find_object(self.table.arrays, self.tag(id_bytes), array, 1, len(array) - 1))

    def add(self, id_bytes: bytes, tag: int | None = None) -> int:
        array = as_array(b"#" + id_bytes)
        tag = self.tag(id_bytes) if tag is None else tag
        self.table.reserve(1, len(id_bytes))
        slot = add(self.table, tag, array, 1)
        assert slot not in self.live
        self.live[slot] = id_bytes, tag
        self.most = max(self.most, len(self.live))
        return slot

    def remove(self, slot: int) -> None:
        remove_object(self.table.arrays, slot, self.table.indexed)
        del self.live[slot]

    def check(self) -> None:
        self.table._check()
        assert self.table.live == len(self.live)
        assert self.table.top == self.most  # slots are reused before new ones are made
        slots = np.array(sorted(self.live), np.int32)
        arena, ends = self.table.ids(slots)
        starts = [0, *ends[:-1]]
        assert [arena[a:b].tobytes() for a, b in zip(starts, ends, strict=False)] == [self.live[s][0] for s in slots]


@pytest.mark.parametrize("hashes", [1, 5, 1 << 40])
def test_it_finds_exactly_the_live_ids_whatever_collides(hashes: int) -> None:
    random, model = Random(hashes), Model(hashes=hashes)
    slots: dict[bytes, int] = {}
    for step in range(1_500):
        id_bytes = an_id(random)
        grows = step % 500 < 300
        if id_bytes in slots:
            assert model.find(id_bytes) == slots[id_bytes]
            if not grows or random.random() < 0.3:
                model.remove(slots.pop(id_bytes))
                assert model.find(id_bytes) == -1
        else:
            assert model.find(id_bytes) == -1
            if grows:
                slots[id_bytes] = model.add(id_bytes)
        if slots and not grows:
            model.remove(slots.pop(random.choice(sorted(slots))))
        model.check()
    for id_bytes, slot in slots.items():
        assert model.find(id_bytes) == slot
    assert model.most > 50


def test_an_id_is_the_same_only_if_all_its_bytes_are() -> None:
    model = Model(hashes=1)
    ids = [b"a" * n for n in range(41)] + [b"a" * n + b"\0" for n in range(40)] + [b"\0" * n for n in range(1, 41)]
    ids += [b"a" * n + b"b" + b"a" * (39 - n) for n in range(40)]
    slots = {id_bytes: model.add(id_bytes) for id_bytes in dict.fromkeys(ids)}
    model.check()
    assert {id_bytes: model.find(id_bytes) for id_bytes in ids} == slots


def test_the_arena_forgets_dead_ids() -> None:
    random, model = Random(1), Model(hashes=1 << 40)
    kept = [model.add(b"keep-%d" % i) for i in range(20)]
    for i in range(3_000):
        slot = model.add(b"x" * 30 + b"%d" % i)
        if random.random() < 0.5:
            model.check()
        model.remove(slot)
    assert len(model.table.arrays.arena) <= 1_024
    assert model.table.top == 21
    assert [model.find(b"keep-%d" % i) for i in range(20)] == kept


def test_reserved_room_holds_what_was_announced() -> None:
    table = ObjectTable(capacity=4)
    table.reserve(1_000, 40_000)
    for i in range(1_000):
        array = as_array(b"%040d" % i)
        add(table, i, array, 0)
    table._check()
    assert table.live == 1_000


def test_records_that_are_objects_may_share_an_id() -> None:
    random, model = Random(2), Model(indexed=False)
    number = 0
    for _ in range(800):
        if random.random() < 0.6 or not model.live:
            model.add(random.choice((b"a", b"b" * 20)), number)
            number += 1
        else:
            model.remove(random.choice(sorted(model.live)))
        model.check()
    assert len({id_bytes for id_bytes, _ in model.live.values()}) == 2 < len(model.live)


def test_ids_order_as_their_bytes_do() -> None:
    random, model = Random(3), Model(hashes=1 << 40)
    ids = {an_id(random) for _ in range(120)} | {b"", b"\0", b"a", b"a\0", b"a\0\0", b"a" * 14, b"a" * 14 + b"\0"}
    slots = {model.add(id_bytes): id_bytes for id_bytes in ids}
    arrays = model.table.arrays
    for a, of_a in slots.items():
        for b, of_b in slots.items():
            assert bool(id_before(arrays, a, b, False)) == (of_a < of_b)


def test_records_with_equal_ids_order_by_their_place_in_the_total_order() -> None:
    model = Model(indexed=False)
    numbers = [5, 3, 9, 0]
    slots = [model.add(b"same-id-of-more-than-14-bytes", number) for number in numbers]
    other = model.add(b"same-id", 1)
    arrays = model.table.arrays
    for a, number in zip(slots, numbers, strict=True):
        assert [bool(id_before(arrays, a, b, True)) for b in slots] == [number < n for n in numbers]
        assert not any(id_before(arrays, a, b, False) for b in slots)
        assert id_before(arrays, other, a, True)
        assert not id_before(arrays, a, other, True)


def test_a_search_goes_on_where_its_hash_was_found() -> None:
    random, model = Random(3), Model(hashes=7)
    ids = [bytes(random.choices(b"abc", k=random.randint(0, 20))) for _ in range(200)]
    places = {}
    for count, id_bytes in enumerate(ids):
        arrays = model.table.arrays
        if model.find(id_bytes) < 0:
            model.add(id_bytes)
        if model.table.arrays is not arrays or count % 50 == 0:
            places.clear()  # a new index: nothing found before holds
        arrays, mask = model.table.arrays, len(model.table.arrays.table) - 1
        for other in ids[: count + 1]:
            home = model.tag(other) & mask
            place = places.setdefault(other, int(seek_hash(arrays, home, model.tag(other))))
            array = as_array(other + b"#")
            found = int(seek_object(arrays, place, model.tag(other), array, 0, len(other)))
            assert int(arrays.table[found, 1]) == model.find(other) >= 0
