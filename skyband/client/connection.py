"""How a client reaches its servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from skyband.errors import DefinitionError, InputError

__all__ = ["CHANNEL_OPTIONS", "Tls", "check_address"]

# A ranking has up to a million rows. A server that comes back is noticed in a second or so, not in two minutes; one
# that is gone without a word, in less than a minute.
CHANNEL_OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """Encryption, with PEM files: whom to trust (None: whom gRPC trusts), and how to be known, if the server asks."""

    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials. Raises InputError if a file cannot be read, DefinitionError for half a pair."""
        if (self.certificate is None) != (self.key is None):
            raise DefinitionError("certificate and key belong together; give both, or neither", field="tls")
        ca, key, certificate = (None if path is None else _read(path) for path in (self.ca, self.key, self.certificate))
        return grpc.ssl_channel_credentials(ca, key, certificate)


def check_address(address: str, field: str = "address") -> str:
    """Return `address` if it is ``host:port``, or a target that gRPC resolves (``dns:…``); else DefinitionError."""
    host, _, port = address.rpartition(":")
    if host and (port.isdigit() or "://" in address or "/" in address):
        return address
    raise DefinitionError(f"{field} {address!r} must be host:port, such as localhost:50051", field=field)


def _read(path: Path | str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror}); give the path of a PEM file") from error
