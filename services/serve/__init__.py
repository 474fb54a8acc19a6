"""All stages in one process, on the user's Kafka: the small deployment."""
