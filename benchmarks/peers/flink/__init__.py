"""Apache Flink SQL as a peer: what it is made of, its processes, its jobs."""
