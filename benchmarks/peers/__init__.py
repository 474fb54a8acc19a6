"""Other systems on the same Kafka, topics and records, for ``python -m benchmarks.bench_pipeline --peer NAME``."""

from benchmarks.peers.flink.peer import Flink
from benchmarks.peers.peer import Form, Peer, PeerError, Run, Trial, Windows

__all__ = ["PEERS", "Form", "Peer", "PeerError", "Run", "Trial", "Windows"]

PEERS: dict[str, Peer] = {"flink": Flink()}
