"""Ports on this machine's own address."""

import socket

__all__ = ["ADDRESS", "answers", "free_ports", "is_free"]

ADDRESS = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return ports that nobody has just now. Another process may take one before it is used: be ready to try again."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((ADDRESS, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def is_free(port: int) -> bool:
    """Return whether `port` can be listened on. What is left of closed connections is no hindrance."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Return whether somebody accepts connections on `port`."""
    try:
        socket.create_connection((ADDRESS, port), timeout=1.0).close()
    except OSError:
        return False
    return True
