"""What a broker of one node is told: nothing is replicated, nothing is waited for, little is kept in memory."""

from collections.abc import Mapping
from pathlib import Path

from services.runtime.embedded.ports import ADDRESS

__all__ = ["write_properties"]

_FIXED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # 50 partitions each by default, all of which are made when the first group or transaction comes.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # A lone group need not wait 3 s for more members.
    "group.initial.rebalance.delay.ms": "0",
    # After a crash the broker may come back only when the session it had is over: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # 128 MB by default, a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": "16777216",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}


def write_properties(path: Path, *, port: int, controller_port: int, data: Path, more: Mapping[str, str]) -> None:
    """Write the file that a broker reads at its start; `more` has the last word."""
    chosen = {
        "listeners": f"PLAINTEXT://{ADDRESS}:{port},CONTROLLER://{ADDRESS}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{ADDRESS}:{port}",
        # Static voters: both ports may differ at the next start on the same data.
        "controller.quorum.voters": f"1@{ADDRESS}:{controller_port}",
        "log.dirs": str(data),
    }
    lines = [f"{name}={value}" for name, value in {**_FIXED, **chosen, **more}.items()]
    path.write_text("\n".join(lines).replace("\\", "\\\\") + "\n", encoding="utf-8")
