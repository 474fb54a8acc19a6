"""A generation that goes on from a rebuild, from the command line."""

import json
from dataclasses import replace
from pathlib import Path

from skyband.client import Client
from skyband.model.rebuild import Rebuild, RebuiltShard, RebuiltSource
from tests.cli.remote import Ask, Deployment, ask, deployment, documents

__all__ = ["ask", "deployment"]


def written(deployment: Deployment, path: Path) -> Rebuild:
    """Write the document of a rebuild with two shards."""
    with Client(deployment.address) as client:
        group = client.get_group("factory").group
    made = Rebuild(
        rebuild_id="1",
        group=replace(group, shards=2),
        generation=2,
        history="aligned",
        made_us=0,
        is_complete=True,
        sources=(RebuiltSource(stream=group.streams[0].name, partition=0, topic_id="", from_offset=3, to_offset=9),),
        shards=(RebuiltShard(shard=0, rows=1, batches=1), RebuiltShard(shard=1, rows=1, batches=1)),
    )
    path.write_text(json.dumps(made.document()), encoding="utf-8")
    return made


def test_it_is_as_the_file_says(ask: Ask, deployment: Deployment, tmp_path: Path) -> None:
    path = tmp_path / "rebuild.json"
    made = written(deployment, path)
    (tried,) = documents(ask("groups", "regenerate", "factory", "--from-rebuild", path, "--dry-run"))
    assert (tried["generation"], tried["shards"]) == (2, 2)
    assert documents(ask("groups", "get", "factory"))[0]["generation"] == 1
    (group,) = documents(ask("groups", "regenerate", "factory", "--from-rebuild", path))
    assert (group["generation"], group["shards"]) == (2, 2)
    assert group["sources"] == [{"stream": made.sources[0].stream, "partition": 0, "offset": 3}]
    again = ask("groups", "regenerate", "factory", "--from-rebuild", path)
    assert again.code == 1
    assert "the rebuild is of generation 2, but the next one of group 'factory' is 3" in again.err


def test_what_is_no_rebuild_is_said_in_one_sentence(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "rebuild.json"
    missing = ask("groups", "regenerate", "factory", "--from-rebuild", path)
    assert (missing.code, missing.out) == (1, "")
    assert "no such file" in missing.err
    path.write_text("{}", encoding="utf-8")
    for text, said in (("{}", "this is no document of a rebuild"), ("x", "rebuild is no JSON")):
        path.write_text(text, encoding="utf-8")
        answer = ask("groups", "regenerate", "factory", "--from-rebuild", path)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
    both = ask("groups", "regenerate", "factory", "--from-rebuild", path, "--shards", 3)
    assert both.code == 2
    assert "--from-rebuild: the rebuild says all of the group; leave the other options out" in both.err
