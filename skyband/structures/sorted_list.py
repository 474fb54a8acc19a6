"""Lists of the same objects, each sorted by another of their numbers, kept up to date as the numbers change.

Words: an *entry* is (key, slot) of an object; a *list* holds entries in ascending order, equal keys by slot, in
*blocks* of at most `BLOCK` of them. Objects need not stand in every list.

::

    list 0    [-9.1 o4 | -9.1 o7 | -8.7 o2]  [-7.5 o1 | -7.2 o9]  [-3.0 o3]
    list 1    [-5.5 o1 | -4.0 o9]                                             o2, o3, o4 and o7 are not in it

Initial state: empty. Invariant: the entries of a list ascend strictly, over all its blocks; none of these is empty; an
object has the entries that `listed` and `own_keys` say. Memory: 12 bytes an entry, in blocks that are joined where
they are less than a quarter full, and 8 bytes for each slot and list.
"""

import itertools

import numpy as np
import numpy.typing as npt

from skyband.structures.sorted_list_kernels import FREE, OBJECTS, ListArrays, has_room, place_object

__all__ = ["BLOCK", "SortedLists"]

# Half a block moves in 50 ns; a million entries then have 12,000 blocks, whose order moves once in 64 insertions.
BLOCK = 128


class SortedLists:
    """`count` lists, at most 62."""

    def __init__(self, count: int, *, block: int = BLOCK) -> None:
        self._arrays = ListArrays(
            keys=np.zeros((0, block)),
            slots=np.zeros((0, block), np.int32),
            sizes=np.zeros(0, np.int32),
            free=np.zeros(0, np.int32),
            order=np.zeros((count, 0), np.int32),
            blocks=np.zeros(count, np.int64),
            lengths=np.zeros(count, np.int64),
            counts=np.zeros(2, np.int64),
            own_keys=np.zeros((0, count)),
            listed=np.zeros(0, np.int64),
        )
        self._grow(2 * count)

    @property
    def arrays(self) -> ListArrays:
        """The current arrays; invalid after the next `make_room`."""
        return self._arrays

    @property
    def entries(self) -> int:
        """Number of entries of all lists."""
        return int(self._arrays.lengths.sum())

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self._arrays)

    def make_room(self, slots: int) -> None:
        """Make room for objects of slots below `slots`, and for any one of them to be placed. Cost amortised O(1)."""
        arrays = self._arrays
        if len(arrays.listed) < slots:
            own_keys = np.zeros((slots, len(arrays.blocks)))
            own_keys[: len(arrays.own_keys)] = arrays.own_keys
            listed = np.zeros(slots, np.int64)
            listed[: len(arrays.listed)] = arrays.listed
            self._arrays = arrays._replace(own_keys=own_keys, listed=listed)
        if not has_room(self._arrays):
            self._grow(2 * len(arrays.sizes))

    def place(self, slot: int, bits: int, keys: npt.NDArray[np.float64]) -> None:
        """Let an object stand in the lists of `bits` with `keys`, one a list, and in no other."""
        self.make_room(slot + 1)
        place_object(self._arrays, slot, bits, keys)

    def read(self, number: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """Return keys and slots of one list, in its order. Cost: its length."""
        arrays = self._arrays
        blocks = arrays.order[number, : int(arrays.blocks[number])]
        keys = [arrays.keys[block, : int(arrays.sizes[block])] for block in blocks]
        slots = [arrays.slots[block, : int(arrays.sizes[block])] for block in blocks]
        return np.concatenate([np.zeros(0), *keys]), np.concatenate([np.zeros(0, np.int32), *slots])

    def _grow(self, blocks: int) -> None:
        old = self._arrays
        known, free = len(old.sizes), int(old.counts[FREE])
        grown = ListArrays(
            keys=np.zeros((blocks, old.keys.shape[1])),
            slots=np.zeros((blocks, old.keys.shape[1]), np.int32),
            sizes=np.zeros(blocks, np.int32),
            free=np.zeros(blocks, np.int32),
            order=np.zeros((len(old.blocks), blocks), np.int32),
            blocks=old.blocks,
            lengths=old.lengths,
            counts=old.counts,
            own_keys=old.own_keys,
            listed=old.listed,
        )
        grown.keys[:known], grown.slots[:known], grown.sizes[:known] = old.keys, old.slots, old.sizes
        grown.order[:, :known] = old.order
        grown.free[:free] = old.free[:free]
        grown.free[free : free + blocks - known] = np.arange(blocks - 1, known - 1, -1)
        grown.counts[FREE] += blocks - known
        self._arrays = grown

    def _check(self) -> None:
        arrays = self._arrays
        used = [int(b) for c, n in enumerate(arrays.blocks) for b in arrays.order[c, : int(n)]]
        free = arrays.free[: int(arrays.counts[FREE])].tolist()
        assert sorted([*used, *free]) == list(range(len(arrays.sizes)))
        assert all(0 < arrays.sizes[block] <= arrays.keys.shape[1] for block in used)
        assert int((arrays.listed != 0).sum()) == arrays.counts[OBJECTS]
        for c in range(len(arrays.blocks)):
            keys, slots = self.read(c)
            assert len(keys) == arrays.lengths[c]
            entries = list(zip(keys.tolist(), slots.tolist(), strict=True))
            assert all(a < b for a, b in itertools.pairwise(entries))
            standing = np.flatnonzero((arrays.listed >> c) & 1)
            assert sorted(slots.tolist()) == standing.tolist()
            assert (arrays.own_keys[slots, c] == keys).all()
