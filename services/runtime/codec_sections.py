"""Sections as a table of numbers, a row each: as records they would cost 10 us apiece."""

from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from services.runtime.codec_rows import SectionTable
from skyband.coverage.aligned_batch import Section

__all__ = ["SECTION_FIELDS", "section_numbers", "section_of"]

SECTION_FIELDS = (
    "stream",
    "partition",
    "from_offset",
    "to_offset",
    "rows",
    "watermark_us",
    "newest_us",
    "idle_until_us",
)
_numbers = attrgetter(*SECTION_FIELDS)


def section_numbers(sections: Iterable[Section]) -> SectionTable:
    """Return sections as int64[sections, 8], columns as SECTION_FIELDS names them."""
    return np.array([_numbers(section) for section in sections], np.int64).reshape(-1, len(SECTION_FIELDS))


def section_of(
    stream: int,
    partition: int,
    from_offset: int,
    to_offset: int,
    rows: int,
    watermark_us: int,
    newest_us: int,
    idle_until_us: int,
) -> Section:
    """Return the section of one row of the table."""
    return Section(
        stream=stream,
        partition=partition,
        from_offset=from_offset,
        to_offset=to_offset,
        rows=rows,
        watermark_us=watermark_us,
        newest_us=newest_us,
        idle_until_us=idle_until_us,
    )
