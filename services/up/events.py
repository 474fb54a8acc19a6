"""What `up` itself has to say, beside what its programs say."""

__all__ = ["DEMO_SENT_BEFORE", "KAFKA_READY", "KAFKA_STARTING", "STOPPED", "STOPPING"]

KAFKA_STARTING = "starting"
KAFKA_READY = "ready"
DEMO_SENT_BEFORE = "the demo's rows were sent before and are still there; --fresh starts over"
STOPPING = "stopping; once more stops at once"
STOPPED = "everything is stopped"
