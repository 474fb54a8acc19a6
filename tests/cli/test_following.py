"""Results of a query that fanout has not heard of yet."""

from collections.abc import Iterator

import pytest

from skyband.cli.following import follow
from skyband.errors import NotFoundError


class Servers:
    """Control knows the query as long as `is_known`; fanout has heard of it after so many calls."""

    def __init__(self, deaf: int, *, is_known: bool = True) -> None:
        self.deaf, self.is_known, self.slept = deaf, is_known, 0.0

    def subscribe(self, path: str, *, progress: bool) -> Iterator[str]:
        self.deaf -= 1
        if self.deaf >= 0:
            raise NotFoundError("no query 'hottest' in group 'factory'")
        yield "a result"
        self.is_known = False
        raise NotFoundError("query 'hottest' was deleted")

    def query(self, path: str) -> None:
        if not self.is_known:
            raise NotFoundError("control knows no such query")

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def results(servers: Servers) -> Iterator[str]:
    return follow(servers, "factory/hottest", clock=lambda: servers.slept, sleep=servers.sleep)  # type: ignore[arg-type,return-value]


def test_a_new_query_is_waited_for() -> None:
    servers = Servers(deaf=3)
    found = results(servers)
    assert next(found) == "a result"
    assert servers.slept == pytest.approx(0.3)
    with pytest.raises(NotFoundError, match="control knows"):
        next(found)


def test_one_that_fanout_never_hears_of_is_not_waited_for_for_ever() -> None:
    servers = Servers(deaf=10_000)
    with pytest.raises(NotFoundError, match="no query 'hottest'"):
        next(results(servers))
    assert 10.0 < servers.slept < 11.0


def test_one_that_control_does_not_know_is_not_waited_for() -> None:
    servers = Servers(deaf=1, is_known=False)
    with pytest.raises(NotFoundError, match="control knows no such query"):
        next(results(servers))
    assert servers.slept == 0.0
