"""Taking over from an aligner that is gone: its own aligned log says where it stood."""

from collections.abc import Mapping

from skyband.align.source import SourceKey, SourceStart
from skyband.coverage.aligned_batch import AlignedBatch, Section

__all__ = ["ResumePoints"]


class ResumePoints:
    """Folds the newest sections of every shard into starts for the next aligner.

    A writer that died may have reached some shards and not others, so a source partition resumes where the shard that
    got least of it stands, with the watermark stated there; the other shards drop what they have as repeats. Release
    times are then those of an unbroken run. Committed offsets alone would not do: they say nothing of watermarks.

    Begins with the generation's starts; reading the last batches of each shard that mention each source is enough.
    """

    def __init__(self, starts: Mapping[SourceKey, SourceStart], shards: int) -> None:
        self._starts = dict(starts)
        self._newest: list[dict[SourceKey, Section]] = [{} for _ in range(shards)]

    def observe(self, batch: AlignedBatch) -> None:
        """Take note of a batch; those of one shard come in the order of its partition."""
        newest = self._newest[batch.shard]
        for section in batch.sections:
            key = (section.stream, section.partition)
            if key in self._starts and (key not in newest or section.to_offset >= newest[key].to_offset):
                newest[key] = section

    def starts(self) -> dict[SourceKey, SourceStart]:
        """Return where each source partition resumes."""
        return {key: min((self._reached(key, shard) for shard in self._newest), key=_progress) for key in self._starts}

    def _reached(self, key: SourceKey, shard: Mapping[SourceKey, Section]) -> SourceStart:
        section = shard.get(key)
        if section is None:
            return self._starts[key]
        return SourceStart(section.to_offset, section.watermark_us, section.newest_us)


def _progress(start: SourceStart) -> tuple[int, int]:
    return start.offset, start.watermark_us
