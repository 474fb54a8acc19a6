"""What shards publish of their group's streams, as Avro records; see schemas/statistics.avsc."""

from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.sketch.publication import Publication

__all__ = ["STATISTICS"]

_PLAIN = plain(Publication)
_OFFSET = ("stream", "partition", "offset")


def _write(publication: Publication) -> AvroRecord:
    offsets = [dict(zip(_OFFSET, numbers, strict=True)) for numbers in publication.next_offsets]
    return {**_PLAIN.write(publication), "next_offsets": offsets}


def _read(record: AvroRecord) -> Publication:
    offsets = tuple((its["stream"], its["partition"], its["offset"]) for its in record["next_offsets"])
    return Publication(**{**record, "next_offsets": offsets})


STATISTICS = (ValueCodec("Publication", Publication, _write, _read),)
