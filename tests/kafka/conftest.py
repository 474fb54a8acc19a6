"""A real Apache Kafka for the tests of this folder: one broker a session (and worker), a fresh topic name a test."""

import uuid
from collections.abc import Iterator

import pytest

from services.runtime.embedded import EmbeddedKafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """The broker of this session; `.bootstrap` is its address. Not for tests that stop it.

    Topics keep their records, unless they say otherwise: tests write records of long ago, which Kafka would delete at
    any moment.
    """
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), properties={"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture
def topic_name() -> str:
    """A name that no other test uses; the topic is not made yet."""
    return f"topic-{uuid.uuid4().hex[:12]}"
