"""What the shards of an aligned log cover, and so which offsets of each source partition a rebuild takes from it.

A source partition is taken from where *all* shards cover it, to where all do::

    shard 0     ····|================|···        its log begins later, since its head is gone
    shard 1    ··|======================|
    taken           [from            to)         the times at `to` are those of shard 0

What was written of it is a function of its offsets alone, so the times that one shard has at an offset are those of
all, and of the aligner that goes on from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.model.duration import MIN_TIME_US

__all__ = ["Span", "Survey", "spans_of", "survey"]


@dataclass(slots=True)
class Span:
    """Offsets [from, to) of a source partition, and its times at `to_offset`."""

    from_offset: int
    to_offset: int
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US


@dataclass(frozen=True, slots=True)
class Survey:
    """What one shard covers, and how many batches say so."""

    shard: int
    spans: Mapping[SourceKey, Span]
    batches: int


def survey(shard: int, batches: Iterable[AlignedBatch]) -> Survey:
    """Return what a shard covers; the batches are without repeats. Cost: the number of sections."""
    spans: dict[SourceKey, Span] = {}
    count = 0
    for batch in batches:
        count += 1
        for section in batch.sections:
            key = (section.stream, section.partition)
            span = spans.get(key)
            if span is None:
                span = spans[key] = Span(section.from_offset, section.to_offset)
            span.to_offset = max(span.to_offset, section.to_offset)
            span.watermark_us = max(span.watermark_us, section.watermark_us)
            span.newest_us = max(span.newest_us, section.newest_us)
    return Survey(shard, spans, count)


def spans_of(surveys: Sequence[Survey], committed: Mapping[SourceKey, SourceStart]) -> dict[SourceKey, Span]:
    """Return what is taken of each source partition, the catalog among them.

    `committed` is how far all shards have each partition for sure; one of which some shard's log speaks no more is
    taken from there on, and so is one of which nothing is left.
    """
    found: dict[SourceKey, Span] = {}
    for key in sorted({key for each in surveys for key in each.spans} | committed.keys()):
        spans = [each.spans[key] for each in surveys if key in each.spans]
        least = min(spans, key=lambda span: span.to_offset, default=None)
        begin = max((span.from_offset for span in spans), default=0)
        if least is not None and len(spans) == len(surveys) and begin <= least.to_offset:
            found[key] = Span(begin, least.to_offset, least.watermark_us, least.newest_us)
        elif key in committed:
            its = committed[key]
            found[key] = Span(its.offset, its.offset, its.watermark_us, its.newest_us)
    found.setdefault(CATALOG_KEY, Span(0, 0))
    return found
