"""The window store's arrays as kernels take them; what they mean is told in `window_store`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Layout", "Rows", "StoreArrays"]


class Rows(NamedTuple):
    """Rows in total order, in columns; `id_hash` int64 view of the 64-bit hash."""

    stream: npt.NDArray[np.int32]
    event_time_us: npt.NDArray[np.int64]
    id_bytes: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int64]
    id_hash: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class StoreArrays(NamedTuple):
    """The store's arrays, as kernels take them. `ticks` is the same memory as `cells`, seen as integers."""

    cells: npt.NDArray[np.float64]
    ticks: npt.NDArray[np.int64]
    chains: npt.NDArray[np.int32]
    buckets: npt.NDArray[np.int32]
    nodes: npt.NDArray[np.int32]
    free_blocks: npt.NDArray[np.int32]
    changes: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.int64]


class Layout(NamedTuple):
    """What kernels must know of the group: per stream its aggregate, width and promise, and the cells' shape."""

    kinds: npt.NDArray[np.int32]
    widths: npt.NDArray[np.int32]
    repeat_after_us: npt.NDArray[np.int64]
    first_field: int
    by_row: bool
    tick_us: int
