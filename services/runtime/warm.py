"""Compiles the kernels of the services once: ``python -m services.runtime.warm``; see skyband.local.warm."""

import io
import json
import sys
import time
from typing import TYPE_CHECKING

import fastavro
import numpy as np

if TYPE_CHECKING:
    from skyband.model.stream import Stream

__all__ = ["warm"]


def warm() -> None:
    """Decode a few records of every kind, and write and read the batches that they make."""
    from services.runtime.codecs import Codecs
    from services.runtime.payloads import Payloads
    from services.runtime.source_decoder import default_schema, make_decoder
    from skyband.align.aligner import Aligner
    from skyband.align.source import SourceStart
    from skyband.model.group import Group
    from skyband.model.stream import Attribute, Fields, Stream, TimeUnit

    _take_nothing()
    codecs = Codecs()
    for unit in (TimeUnit.US, TimeUnit.MS, TimeUnit.S, TimeUnit.KAFKA):
        stream = Stream(name="a", attributes=(Attribute(name="a"),), fields=Fields(time_unit=unit))
        group = Group(name="g", streams=(stream,), retention_us=1_000_000)
        values = Payloads.of([_record(stream, default_schema(stream), i) for i in range(50)])
        count = len(values)
        offsets = np.arange(count, dtype=np.int64)
        rows = make_decoder(stream).decode(offsets, np.full(count, 1_000_000, np.int64), values)
        aligner = Aligner(group, 1, 1, {(0, 0): SourceStart()})
        aligner.add(0, 0, 0, count, rows)
        for batch in aligner.flush(0):
            codecs.decode("aligned.g.1", codecs.encode("aligned.g.1", batch))


def _take_nothing() -> None:
    """Compile what takes messages; it needs a consumer, but no Kafka."""
    from confluent_kafka import Consumer

    from services.runtime.kafka_bulk import KafkaBulk

    consumer = Consumer({"group.id": "warm"})
    bulk = KafkaBulk(consumer, 1)
    bulk.take(1, 0.0)
    bulk.close()
    consumer.close()


def _record(stream: "Stream", schema: str, number: int) -> bytes:
    out = io.BytesIO()
    record = {stream.fields.object_id: f"o{number % 7}", stream.fields.event_time: number, stream.fields.value: 1.0}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), record)
    return out.getvalue()


if __name__ == "__main__":
    begun = time.perf_counter()
    warm()
    sys.stderr.write(f"{'decoders and codecs of the services':<40}{time.perf_counter() - begun:6.1f} s\n")
