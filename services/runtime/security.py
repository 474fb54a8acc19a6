"""Who may listen in: certificates of the gRPC servers. Kafka's security lies in KafkaSettings."""

from dataclasses import dataclass
from pathlib import Path

import grpc

from skyband.errors import SkybandError

__all__ = ["ServerTls"]


@dataclass(frozen=True, slots=True)
class ServerTls:
    """A certificate chain and its key, PEM."""

    certificate: Path
    key: Path

    @classmethod
    def of(cls, certificate: Path | None, key: Path | None) -> "ServerTls | None":
        """Return what the settings name, None if they name nothing. Raises SkybandError for one without the other."""
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            raise SkybandError("SKYBAND_TLS_CERTIFICATE and SKYBAND_TLS_KEY belong together; give both, or neither")
        return cls(certificate, key)

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials. Raises SkybandError if a file cannot be read."""
        try:
            return grpc.ssl_server_credentials([(self.key.read_bytes(), self.certificate.read_bytes())])
        except OSError as error:
            raise SkybandError(f"cannot read {error.filename}: {error.strerror}; see SKYBAND_TLS_…") from error
