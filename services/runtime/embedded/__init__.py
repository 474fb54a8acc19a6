"""Apache Kafka on this machine: one node, started and stopped by this process, which it never outlives."""

from services.runtime.embedded.broker import EmbeddedKafka

__all__ = ["EmbeddedKafka"]
