"""The registry's client: what it asks, how often, and what it makes of the answers."""

import json
from collections.abc import Iterator

import pytest

from services.runtime.source_registry import BundledSchemas, RegistrySchemas, http_fetch
from skyband.errors import DefinitionError, LogError
from tests.services.answering import Answers, answering

UNKNOWN = (404, b'{"error_code": 40403, "message": "Schema not found"}')


class Registry:
    """Answers by address; `asked` is what it was asked, `now` its clock."""

    def __init__(self) -> None:
        self.answers: dict[int, tuple[int, bytes] | Exception] = {}
        self.asked: list[int] = []
        self.now = 1000.0

    def fetch(self, address: str) -> tuple[int, bytes]:
        assert address.startswith("http://registry:8081/schemas/ids/")
        self.asked.append(int(address.rsplit("/", 1)[1]))
        answer = self.answers.get(self.asked[-1], UNKNOWN)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def schemas(self, **options: float) -> RegistrySchemas:
        return RegistrySchemas("http://registry:8081/", fetch=self.fetch, clock=lambda: self.now, **options)  # type: ignore[arg-type]


def answer(**fields: str) -> tuple[int, bytes]:
    return 200, json.dumps(fields).encode()


def test_a_schema_is_asked_for_once() -> None:
    registry = Registry()
    registry.answers[7] = answer(schema='"string"')
    schemas = registry.schemas()
    assert [schemas.get(7), schemas.get(7)] == ['"string"'] * 2
    assert registry.asked == [7]


def test_an_unknown_id_is_asked_for_again_only_after_its_time() -> None:
    registry = Registry()
    schemas = registry.schemas(unknown_for_s=10)
    assert schemas.get(7) is None
    registry.answers[7] = answer(schema="{}")
    registry.now += 9.9
    assert schemas.get(7) is None
    registry.now += 0.1
    assert schemas.get(7) == "{}"
    assert registry.asked == [7, 7]


def test_a_flood_of_unknown_ids_is_asked_for_so_many_times_a_minute() -> None:
    registry = Registry()
    registry.answers[99] = answer(schema="{}")
    schemas = registry.schemas(most_unknown=3)
    assert schemas.get(99) == "{}"
    for _ in range(4):
        assert {schemas.get(schema_id) for schema_id in range(50)} == {None}
        registry.now += 20
        # What is known stays known whatever comes.
        assert schemas.get(99) == "{}"
    assert registry.asked == [99, 0, 1, 2, 0, 1, 2]


def test_ids_that_turn_out_known_are_not_counted_against_the_limit() -> None:
    registry = Registry()
    registry.answers = {schema_id: answer(schema="{}") for schema_id in range(50)}
    schemas = registry.schemas(most_unknown=3)
    assert {schemas.get(schema_id) for schema_id in range(50)} == {"{}"}


@pytest.mark.parametrize(
    "bad",
    [
        OSError("connection refused"),
        TimeoutError("timed out"),
        (500, b"oops"),
        (401, b'{"error_code": 401}'),
        (404, b"<html>no such page</html>"),
        (404, b'{"error_code": 404}'),
        (200, b"<html>welcome</html>"),
        (200, b'{"schema": 7}'),
        (200, b"[]"),
        (429, b""),
    ],
)
def test_a_registry_that_gives_no_answer_is_an_error_until_it_does(bad: tuple[int, bytes] | Exception) -> None:
    registry = Registry()
    registry.answers[7] = bad
    schemas = registry.schemas(retry_s=2)
    for _ in range(5):
        with pytest.raises(LogError, match=r"ids/7.*asked again"):
            schemas.get(7)
    assert registry.asked == [7]
    registry.answers[7] = answer(schema="{}")
    registry.now += 2
    assert schemas.get(7) == "{}"
    assert schemas.get(8) is None


def test_a_schema_of_another_kind_is_none() -> None:
    registry = Registry()
    registry.answers = {
        1: answer(schema="{}", schemaType="JSON"),
        2: answer(schema="syntax", schemaType="PROTOBUF"),
        3: answer(schema="{}", schemaType="AVRO"),
    }
    assert [registry.schemas().get(schema_id) for schema_id in (1, 2, 3)] == [None, None, "{}"]


@pytest.mark.parametrize("url", ["", "registry:8081", "file:///etc/passwd", "http://", "ftp://registry"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(DefinitionError, match="is no address"):
        RegistrySchemas(url)


def test_bundled_schemas_go_before_those_of_the_registry() -> None:
    registry = Registry()
    registry.answers = {1: answer(schema="theirs"), 2: answer(schema="theirs")}
    schemas = BundledSchemas({1: "mine"}, registry.schemas())
    assert [schemas.get(schema_id) for schema_id in (1, 2, 3)] == ["mine", "theirs", None]
    assert BundledSchemas({1: "mine"}).get(2) is None


class Handler(Answers):
    """One schema, for those who have access."""

    def answer(self) -> tuple[int, bytes]:
        if self.headers["Authorization"] != "Basic abc":
            return 401, b'{"error_code": 401}'
        return answer(schema='"long"') if self.path == "/sub/schemas/ids/5" else UNKNOWN


@pytest.fixture
def address() -> Iterator[str]:
    with answering(Handler) as address:
        yield f"{address}/sub"


def test_schemas_are_fetched_over_http(address: str) -> None:
    schemas = RegistrySchemas(address, fetch=http_fetch({"Authorization": "Basic abc"}))
    assert (schemas.get(5), schemas.get(6)) == ('"long"', None)
    with pytest.raises(LogError, match="answers 401"):
        RegistrySchemas(address).get(5)


def test_nothing_that_listens_is_an_error_and_no_unknown_schema(address: str) -> None:
    gone = address.replace("127.0.0.1", "127.0.0.2").replace("/sub", "")
    with pytest.raises(LogError, match="cannot be asked for"):
        RegistrySchemas(gone).get(5)
