"""Jobs on Apache Spark over Kafka's history: each a module ``spark.<job>``, run by python -m or spark-submit."""
