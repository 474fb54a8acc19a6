"""The document of a rebuild: what is written is read back, and what is damaged is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.rebuild import HISTORY_PARTITIONS, Rebuild, RebuiltShard, RebuiltSource
from tests.workloads import seeded


def rebuild(seed: int = 1) -> Rebuild:
    group = replace(seeded(seed, 0)[0], shards=2)
    stream = group.streams[0].name
    return Rebuild(
        rebuild_id="abc",
        group=group,
        generation=3,
        history="aligned",
        made_us=1_700_000_000_000_000,
        since_us=-5,
        is_complete=True,
        sources=(
            RebuiltSource(stream=stream, partition=0, topic_id="t", from_offset=0, to_offset=7, watermark_us=-4),
            RebuiltSource(
                stream=stream, partition=HISTORY_PARTITIONS, topic_id="", from_offset=2, to_offset=2, joins=True
            ),
        ),
        catalog_to=12,
        shards=(RebuiltShard(shard=0, rows=5, batches=2), RebuiltShard(shard=1, rows=2, batches=2, snapshot_at=1)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_back(seed: int) -> None:
    made = rebuild(seed)
    assert Rebuild.of(json.loads(json.dumps(made.document()))) == made
    planned = replace(made, is_complete=False, sources=(), shards=())
    assert Rebuild.of(json.loads(json.dumps(planned.document()))) == planned
    assert made.sources[0].newest_us == MIN_TIME_US
    assert [source.is_history for source in made.sources] == [False, True]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 9}, "it has version 9, this release reads 1"),
        ({"shards": []}, "its shards are not those of its group"),
        ({"catalog_to": "x"}, "it is damaged"),
        ({"sources": [{"stream": "a"}]}, "it is damaged"),
        ({"sources": 3}, "it is damaged"),
        ({"group": {"name": "g"}}, "has no streams"),
        ({"rebuild_id": None, "generation": None}, "it is damaged"),
    ],
)
def test_what_is_damaged_is_refused_in_words(change: dict[str, Any], why: str) -> None:
    with pytest.raises(DefinitionError, match=f"no document of a rebuild: .*{why}") as refused:
        Rebuild.of({**rebuild().document(), **change})
    assert refused.value.field == "rebuild"


def test_offsets_that_cannot_be_are_refused() -> None:
    made = rebuild()
    for change in ({"to_offset": -1}, {"partition": -1}, {"partition": HISTORY_PARTITIONS}, {"stream": "nobody"}):
        document = made.document()
        document["sources"][0] |= change
        with pytest.raises(DefinitionError, match="no document of a rebuild"):
            Rebuild.of(document)
    with pytest.raises(DefinitionError, match="it is no JSON object"):
        Rebuild.of([])
