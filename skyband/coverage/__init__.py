"""The time protocol: sections, gaps, watermarks, idle leases, the frontier, the total order."""

from skyband.coverage.aligned_batch import AlignedBatch, CatalogRecord, Section
from skyband.coverage.sequenced_rows import SequencedRows
from skyband.coverage.sequencer import Sequencer

__all__ = ["AlignedBatch", "CatalogRecord", "Section", "SequencedRows", "Sequencer"]
