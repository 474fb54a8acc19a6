"""The sketches give the same bits with their kernels compiled and interpreted, and no arithmetic that warns."""

import hashlib

from skyband.sketch import CountsOfCounts, GroupSketch, SlidingFM
from skyband.sketch.repetition import SecondMoment
from skyband.structures.coordinated_sample import CoordinatedSample
from tests.interpreted import assert_same_interpreted, print_digest
from tests.sketch.columns import S, some_rows


def digest() -> str:
    """Return a hash of what sketches of a few small workloads hold, to the last bit."""
    found = hashlib.sha256()
    for seed in range(2):
        rows = some_rows(seed, 600, objects=300, seconds=40)
        sketches = [GroupSketch(3, 2, 10 * S, S, bitmaps=16, columns=16, budget_bytes=4_000) for _ in range(2)]
        alone = SlidingFM(3, 16), SecondMoment(3, 10 * S, S, 16), CoordinatedSample(3, 2, 10 * S, budget_bytes=4_000)
        counts = CountsOfCounts(3, S)
        for at in range(0, 600, 100):
            sketches[at // 100 % 2].add(rows, at, at + 100)
            for one in (*alone, counts):
                one.add(rows, at, at + 100)
            low = int(rows.event_time_us[at]) // S * S - 10 * S
            for one in (*sketches, *alone[1:], counts):
                one.expire(low)
        sketches[0].merge(sketches[1])
        found.update(GroupSketch.from_bytes(sketches[0].to_bytes()).to_bytes())
        found.update(sketches[0].sample.objects(41 * S, 10 * S).present.tobytes())
        found.update(alone[0].newest_us.tobytes() + alone[1].tallies.tobytes())
        found.update(b"".join(array.tobytes() for array in alone[2].arrays))
        found.update(b"".join(counts.objects_by_count(stream).tobytes() for stream in range(3)))
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_sketches() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
