"""How align asks a schema registry is told by its settings."""

from collections.abc import Iterator

import pytest

from services.align.settings import AlignServiceSettings
from skyband.errors import DefinitionError
from tests.services.answering import Answers, answering


class Handler(Answers):
    """Answers with a schema that holds the credentials it was given."""

    def answer(self) -> tuple[int, bytes]:
        return 200, b'{"schema": "%s"}' % self.headers.get("Authorization", "none").encode()


@pytest.fixture
def address() -> Iterator[str]:
    with answering(Handler) as address:
        yield address


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
