"""How align asks a schema registry is told by its settings."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from services.align.settings import AlignServiceSettings
from skyband.errors import DefinitionError


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with a schema that holds the credentials it was given."""

    def do_GET(self) -> None:
        body = b'{"schema": "%s"}' % self.headers.get("Authorization", "none").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def asked(**settings: str) -> str | None:
    schemas = AlignServiceSettings(**settings).schemas()  # type: ignore[arg-type]
    assert schemas is not None
    return schemas.get(1)


def test_a_registry_is_asked_with_user_and_password_if_there_are_any(address: str) -> None:
    assert asked(registry=address) == "none"
    assert asked(registry=address, registry_username="ann", registry_password="se:cret") == "Basic YW5uOnNlOmNyZXQ="


def test_without_an_address_there_is_no_registry() -> None:
    assert AlignServiceSettings().schemas() is None


def test_a_password_does_not_show(address: str) -> None:
    assert "secret" not in repr(AlignServiceSettings(registry=address, registry_password="secret"))  # type: ignore[arg-type]


def test_a_file_of_certificates_that_cannot_be_read_is_named() -> None:
    with pytest.raises(DefinitionError, match=r"registry_ca '/none\.pem' cannot be read: No such file"):
        AlignServiceSettings(registry="https://registry", registry_ca="/none.pem").schemas()
