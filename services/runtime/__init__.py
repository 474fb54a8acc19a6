"""What a process stands on: Kafka, codecs, settings, logs, health, signals."""
