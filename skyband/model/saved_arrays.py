"""Arrays under names: the form in which whatever a shard is made of gives its state away, and takes it back.

A class with state has `state()`, which returns copies of its arrays without the room that is not in use, and
`restore(state)`, which takes them into a new object of the same shape. Parts of a larger whole have names with a
prefix: ``objects.records``. Numbers lie in arrays, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from skyband.errors import LogError

__all__ = ["SavedArrays", "array_of", "part_of", "prefixed"]

SavedArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


def prefixed(prefix: str, state: SavedArrays) -> dict[str, npt.NDArray[Any]]:
    """Return the same arrays as part `prefix` of a larger whole."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def part_of(state: SavedArrays, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of part `prefix`, under their own names; of a part that is not there: none."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in state.items() if name.startswith(start)}


def array_of(state: SavedArrays, name: str, kind: Any, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return an array, possibly read-only, that must be of this kind and shape (-1: any length).

    Raises LogError if it is missing or another.
    """
    found = state.get(name)
    wanted = np.dtype(kind)
    if found is None:
        raise LogError(f"a snapshot has no array {name!r}; it is of another release, or damaged: delete it")
    fits = len(found.shape) == len(shape) and all(
        asked in (-1, there) for asked, there in zip(shape, found.shape, strict=True)
    )
    if not fits or found.dtype != wanted:
        raise LogError(
            f"array {name!r} of a snapshot is {found.dtype.name}{list(found.shape)}, not "
            f"{wanted.name}{list(shape)}; it is of another group or release: delete it"
        )
    return found
