"""How an align stage is set up."""

from dataclasses import dataclass

__all__ = ["AlignSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignSettings:
    """How an align stage batches and whom it writes as.

    It flushes when `batch_rows` rows or dead letters wait, or something waits for `flush_interval_us`, twice that if
    half a batch waits then; none of it changes a result. `poll_records` bounds one poll. What is written is committed
    at the latest `commit_interval_us` later: a commit waits until the log has stored everything, and who takes over
    reads that much again. Ends of partitions are asked for every `tick_interval_us`. How sources are doing is told to
    `progress_topic` (empty: nobody) every `report_interval_us`; a member of a group also learns there how far its
    shards are.
    """

    writer: str = "align"
    batch_rows: int = 10_000
    max_rows: int = 50_000
    flush_interval_us: int = 25_000
    commit_interval_us: int = 0
    tick_interval_us: int = 250_000
    poll_records: int = 2_000
    catalog_topic: str = "catalog"
    dead_letter_topic: str = "dead-letters"
    progress_topic: str = ""
    report_interval_us: int = 1_000_000
