"""How well two sketches of equal size know which objects of one stream come on another."""

from dataclasses import dataclass

import numpy as np

from benchmarks.papers.columns import timed_rows
from skyband.sketch.sliding_fm import SlidingFM
from skyband.structures.coordinated_sample import CoordinatedSample, appearance_among
from skyband.structures.store_arrays import Rows

__all__ = ["Errors", "appearance_errors"]

_SECOND_US = 1_000_000
_WINDOW_US = 10 * _SECOND_US
_BITMAP_BYTES = 256


@dataclass(frozen=True)
class Errors:
    """Root mean square errors of a chance, and what the chance is; `fm_in_window`: against those in the window."""

    chance: float
    fm: float
    fm_in_window: float
    sample: float
    unknown: int


def _on_both(rows: Rows, inside: slice, given: int, stream: int) -> float:
    """Return the share of the objects of `given` within a slice that are on `stream` within it."""
    streams, hashes = rows.stream[inside], rows.id_hash[inside]
    return float(np.isin(hashes[streams == given], hashes[streams == stream]).mean())


def appearance_errors(alpha: float, bitmaps: int, seeds: int, recent: int = 20) -> Errors:
    """Return the errors over windows of 10,000 rows of two streams, with so many bitmaps a stream or as many bytes."""
    fm_errors, in_window, sample_errors, truths, unknown = [], [], [], [], 0
    for seed in range(seeds):
        rows = timed_rows(seed, 60_000, streams=2, alpha=alpha, recent=recent, rows_per_second=1_000.0)
        fm = SlidingFM(2, bitmaps)
        sample = CoordinatedSample(2, 1, _WINDOW_US, budget_bytes=2 * bitmaps * _BITMAP_BYTES)
        settled = slice(*np.searchsorted(rows.event_time_us, (_WINDOW_US, 5 * _WINDOW_US)))
        at = 0
        for second in range(1, 51):
            now_us = second * _SECOND_US
            last = int(np.searchsorted(rows.event_time_us, now_us))
            fm.add(rows, at, last)
            sample.add(rows, at, last)
            sample.expire(now_us - _WINDOW_US)
            at = last
            if second < 20 or second % 10:
                continue
            window = slice(int(np.searchsorted(rows.event_time_us, now_us - _WINDOW_US)), last)
            objects = sample.objects(now_us, _WINDOW_US)
            for given in (0, 1):
                truth = _on_both(rows, settled, given, 1 - given)
                both = fm.intersection(0, 1, now_us, _WINDOW_US).value
                chance = both / fm.likely(given, now_us, _WINDOW_US).value
                truths.append(truth)
                fm_errors.append(chance - truth)
                in_window.append(chance - _on_both(rows, window, given, 1 - given))
                found = appearance_among(objects, 1 << given, 1 - given, now_us, _WINDOW_US)
                unknown += found is None
                sample_errors += [found.probability - truth] if found else []
    return Errors(float(np.mean(truths)), _rms(fm_errors), _rms(in_window), _rms(sample_errors), unknown)


def _rms(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else float("nan")
