"""Full snapshots on a real Kafka: records of chunks and a manifest, taken up by the engine, deleted by tombstones."""

import uuid
from dataclasses import replace

import pytest

from services.runtime.codecs import Codecs
from services.runtime.embedded import EmbeddedKafka
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.engine.settings import EngineTopics, EngineTuning
from skyband.engine.snapshot_records import snapshot_key, write_snapshot
from skyband.engine.stage import EngineStage
from skyband.engine.stored_checkpoints import read_checkpoints
from skyband.log.read_range import read_all
from skyband.log.record_log import Position
from tests.engine.stage_over_memory import GROUP
from tests.engine.test_snapshot import said
from tests.engine.test_stage_snapshots import CUT, flat, log_of, unbroken
from tests.kafka.logs import delete_records, moments

pytestmark = pytest.mark.kafka

ALIGNED = "aligned.g.1"


def stage_of(log: KafkaLog) -> EngineStage:
    topics = EngineTopics(aligned=ALIGNED, checkpoints="checkpoints")
    tuning = EngineTuning(checkpoint_every_us=0, max_records=2)
    return EngineStage(log, replace(GROUP, shards=1), 1, {(0, 0): 0}, topics, tuning=tuning)


def partials(log: KafkaLog) -> list[str]:
    return said([record.value for record in read_all(log, "partials") if record.value is not None])


def test_a_shard_goes_on_from_chunks_and_its_small_checkpoint_deletes_them(kafka: EmbeddedKafka) -> None:
    settings = KafkaSettings(bootstrap=kafka.bootstrap, topic_prefix=f"t{uuid.uuid4().hex[:8]}.", replication_factor=1)
    log, memory = KafkaLog(settings, Codecs()), log_of()
    log.create_topic(ALIGNED, 1)
    log.create_topic("partials", 1)
    log.create_topic("checkpoints", 4, config={"cleanup.policy": "compact"})
    producer = log.producer()
    batches = memory.values("aligned")
    for batch in batches:
        assert isinstance(batch, AlignedBatch)
        producer.send(ALIGNED, 0, batch, key=b"0")
    shard, _ = unbroken(memory, until=CUT)
    manifest = write_snapshot(producer, "checkpoints", 4, shard.snapshot(CUT), "job-1", chunk_bytes=1_000)
    assert manifest.snapshot is not None
    assert manifest.snapshot.chunks > 3
    producer.close()
    delete_records(kafka.bootstrap, Position(settings.topic_prefix + ALIGNED, 0), CUT)
    truth = flat(unbroken(memory)[1][CUT:])
    stage = stage_of(log)
    for _ in moments():
        stage.step(0.1)
        if len(partials(log)) >= len(truth):
            break
    stage.close()
    assert stage.stopped == {}
    assert partials(log) == truth
    stored = read_checkpoints(log, "checkpoints", "g", 1, {0})[0]
    small = stored.furthest()
    assert small is not None
    assert small.snapshot is None
    assert not stored.of_snapshots
    gone = [record.key for record in read_all(log, "checkpoints") if record.key and record.value is None]
    assert gone[0] == snapshot_key(manifest).encode()
    assert len(gone) == manifest.snapshot.chunks + 2
