"""Recorded streams, read from the folder of data beside the project; they are not part of it."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.papers.columns import numbered
from skyband.structures.store_arrays import Rows

__all__ = ["DATA", "nab_rows", "world_cup_rows", "world_cup_servers"]

DATA = Path(__file__).parents[2].parent / "shared" / "data"

_REQUEST = np.dtype(
    [(name, ">u4") for name in ("time", "client", "object", "size")]
    + [(name, "u1") for name in ("method", "status", "type", "server")]
)
_UNKNOWN_SIZE = 0xFFFF_FFFF
_CHUNK_S = 5


def _chunks(folder: Path) -> npt.NDArray[np.int64]:
    """Return (chunk, server, client, bytes) of the requests of each client to each server in each five seconds."""
    found = np.fromfile(folder / "worldcup98" / "wc_day50_4.head", _REQUEST)
    size = np.where(found["size"] == _UNKNOWN_SIZE, 0, found["size"]).astype(np.int64)
    chunk = (found["time"].astype(np.int64) - int(found["time"][0])) // _CHUNK_S
    keys = np.stack([chunk, found["server"].astype(np.int64), found["client"].astype(np.int64)], axis=1)
    own, inverse = np.unique(keys, axis=0, return_inverse=True)
    return np.column_stack([own, np.bincount(inverse.ravel(), size, len(own)).astype(np.int64)])


def world_cup_servers(folder: Path, count: int) -> list[int]:
    """Return the `count` busiest servers, counted in chunks of clients."""
    servers, times = np.unique(_chunks(folder)[:, 1], return_counts=True)
    return [int(server) for server in servers[np.argsort(-times, kind="stable")][:count]]


def world_cup_rows(folder: Path, servers: list[int], count: int, seed: int) -> Rows:
    """Return at least `count` rows of clients on servers: a stream for each server, bytes in five seconds, at most 1.

    A client's n-th chunk on each server belongs to one object, so that an object comes once on a stream. The recording
    is replayed, with other clients each time; the rows of a chunk come in an order that chance decides.
    """
    chunks = _chunks(folder)
    chunks = chunks[np.isin(chunks[:, 1], servers)]
    stream = np.searchsorted(np.sort(servers), chunks[:, 1])
    occurrence = _occurrences(stream, chunks[:, 2])
    _, objects = np.unique(np.stack([chunks[:, 2], occurrence], axis=1), axis=0, return_inverse=True)
    objects = objects.ravel()
    values = chunks[:, 3] / chunks[:, 3].max()
    random = np.random.default_rng(seed)
    own = int(objects.max()) + 1
    streams, names, parts = [], [], []
    for replay in range(-(-count // len(chunks))):
        order = np.lexsort((random.random(len(chunks)), chunks[:, 0]))
        streams.append(stream[order])
        names.append(own * replay + random.permutation(own)[objects[order]])
        parts.append(values[order])
    return numbered(np.concatenate(streams), np.concatenate(names), np.concatenate(parts))


def _occurrences(stream: npt.NDArray[np.int64], client: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each row how many rows of the same stream and client come before it."""
    seen: dict[tuple[int, int], int] = {}
    found = np.zeros(len(stream), np.int64)
    for row, key in enumerate(zip(stream.tolist(), client.tolist(), strict=True)):
        found[row] = seen[key] = seen.get(key, -1) + 1
    return found


def nab_rows(folder: Path, seed: int, *, reported: float = 0.6, lag: float = 3.0) -> Rows:
    """Return rows of five minutes of tweets on four companies: a stream for each company, the volume, at most 1.

    Chance decides whether a company's volume is reported (with a chance of `reported`), and when: the first company's
    after some `lag` intervals on average, the next one's after twice that, and so on.
    """
    random = np.random.default_rng(seed)
    streams, objects, values, times = [], [], [], []
    for stream, path in enumerate(sorted((folder / "nab").glob("Twitter_volume_*.csv"))):
        table = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=[1])
        kept = np.flatnonzero(random.random(len(table)) < reported)
        streams.append(np.full(len(kept), stream))
        objects.append(kept)
        values.append(table[kept] / table.max())
        times.append(kept + random.exponential(lag * (stream + 1), len(kept)))
    order = np.argsort(np.concatenate(times), kind="stable")
    return numbered(np.concatenate(streams)[order], np.concatenate(objects)[order], np.concatenate(values)[order])
