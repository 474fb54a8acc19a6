"""Compiles the kernels of the services once: ``python -m services.runtime.warm``; see skyband.local.warm."""

import sys
import time

import numpy as np

__all__ = ["warm"]


def warm() -> None:
    """Decode a few records of every kind, and write and read the batches that they make."""
    from services.produce.encode import make_encoder
    from services.runtime.codecs import Codecs
    from services.runtime.source_decoder import make_decoder
    from skyband.align.aligner import Aligner
    from skyband.align.source import SourceStart
    from skyband.model.group import Group
    from skyband.model.stream import Attribute, Fields, Stream, TimeUnit

    codecs = Codecs()
    for unit in (TimeUnit.US, TimeUnit.MS, TimeUnit.S, TimeUnit.KAFKA):
        stream = Stream(name="a", attributes=(Attribute(name="a"),), fields=Fields(time_unit=unit))
        group = Group(name="g", streams=(stream,), retention_us=1_000_000)
        encode = make_encoder(stream)
        values = [encode(f"o{i % 7}", i * 1_000_000, [float(i)]) for i in range(50)]
        count = len(values)
        offsets = np.arange(count, dtype=np.int64)
        rows = make_decoder(stream).decode(offsets, np.full(count, 1_000_000, np.int64), values)
        aligner = Aligner(group, 1, 1, {(0, 0): SourceStart()})
        aligner.add(0, 0, 0, count, rows)
        for batch in aligner.flush(0):
            codecs.decode("aligned.g.1", codecs.encode("aligned.g.1", batch))


if __name__ == "__main__":
    begun = time.perf_counter()
    warm()
    sys.stderr.write(f"{'decoders and codecs of the services':<40}{time.perf_counter() - begun:6.1f} s\n")
