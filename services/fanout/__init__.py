"""The process of fanout: partials in, results out, to Kafka and to subscribers."""
