"""Checks a running Skyband from Kafka to results."""
