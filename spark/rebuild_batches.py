"""From sections and their rows to the batches of a new shard, none of them too large for a record."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.model.duration import MIN_TIME_US
from spark.rebuild_rows import Rows, together

__all__ = ["MAX_ROWS", "BatchCutter", "Output"]

# As many as align puts into a batch.
MAX_ROWS = 50_000
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Output:
    """What one batch shall hold: `rows` has the rows of all sections, in their order, those of the catalog apart."""

    sections: list[Section]
    rows: list[Rows]
    catalog: tuple[CatalogRecord, ...]
    written_us: int


class _Waiting:
    """Outputs without rows, put together: nothing can be evaluated before the first row comes."""

    def __init__(self) -> None:
        self._sections: dict[_Place, Section] = {}
        self._catalog: list[CatalogRecord] = []
        self._written_us = MIN_TIME_US

    def add(self, output: Output) -> None:
        for its in output.sections:
            place = (its.stream, its.partition)
            before = self._sections.get(place)
            self._sections[place] = its if before is None else replace(its, from_offset=before.from_offset)
        self._catalog += output.catalog
        self._written_us = max(self._written_us, output.written_us)

    def take(self) -> Output | None:
        if not self._sections:
            return None
        found = Output(list(self._sections.values()), [], tuple(self._catalog), self._written_us)
        self._sections, self._catalog = {}, []
        return found


class BatchCutter:
    """Makes batches of a (group, generation, shard) out of outputs: one each, several if one would be too large.

    `is_late`: rows of a long time may be left out at the beginning; what comes before the first row is then one batch.
    """

    def __init__(self, place: tuple[str, int, int], writer: str, width: int, *, is_late: bool = False) -> None:
        self._batch = partial(_batch, place=place, writer=writer, width=width)
        self._width, self._is_late = width, is_late
        self._said: dict[_Place, Section] = {}
        self._waiting = _Waiting()

    def take(self, output: Output) -> Iterator[AlignedBatch]:
        """Yield what an output completes."""
        if self._is_late and not any(map(len, output.rows)):
            self._waiting.add(output)
            return
        yield from self.rest()
        self._is_late = False
        yield from map(self._batch, _split(output, self._said, self._width))

    def rest(self) -> Iterator[AlignedBatch]:
        """Yield what waits for rows."""
        if (waiting := self._waiting.take()) is not None:
            yield from map(self._batch, _split(waiting, self._said, self._width))


def _batch(output: Output, *, place: tuple[str, int, int], writer: str, width: int) -> AlignedBatch:
    rows = together(output.rows, width)
    group, generation, shard = place
    return AlignedBatch(
        group=group,
        generation=generation,
        shard=shard,
        writer=writer,
        written_us=output.written_us,
        sections=tuple(output.sections),
        catalog=output.catalog,
        **rows.columns(),
    )


def _split(output: Output, said: dict[_Place, Section], width: int) -> Iterator[Output]:
    """Yield an output in parts by source offset; a part inside a section promises what was promised before it."""
    rows = together(output.rows, width)
    low = 0
    sections: list[Section] = []
    if len(rows) > MAX_ROWS:
        rest: list[Section] = []
        at = 0
        for section in output.sections:
            stop = at + section.rows
            while stop - low > MAX_ROWS:
                cut = low + MAX_ROWS
                offset = int(rows.offset[cut])
                before = said.get((section.stream, section.partition))
                part = replace(
                    section,
                    to_offset=offset,
                    rows=cut - at,
                    watermark_us=MIN_TIME_US if before is None else before.watermark_us,
                    newest_us=MIN_TIME_US if before is None else before.newest_us,
                    idle_until_us=0,
                )
                yield Output([*sections, part], [rows.part(low, cut)], (), output.written_us)
                section = replace(section, from_offset=offset, rows=stop - cut)
                sections, low, at = [], cut, cut
            (sections if section.rows else rest).append(section)
            at = stop
        sections += rest
    for section in output.sections:
        said[section.stream, section.partition] = section
    yield Output(sections or output.sections, [rows.part(low, len(rows))], output.catalog, output.written_us)
