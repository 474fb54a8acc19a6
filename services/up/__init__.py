"""Everything real on one machine: an Apache Kafka and one process per service, started, watched, stopped in order."""
