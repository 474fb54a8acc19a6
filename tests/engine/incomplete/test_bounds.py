"""What an algorithm that forgets cannot serve is refused; of all else it knows bounds and promises."""

from typing import Any

import pytest

from skyband.engine.incomplete.bounds import ask
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.errors import NotServedError
from skyband.model.ability import why_not_forget
from skyband.model.binding import BoundQuery, bind
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Stream


def made(score: str = "a", *, query: dict[str, Any] | None = None, **more: Any) -> tuple[BoundQuery, Group]:
    """Return a query over two streams a and b, of which `more` says how a is."""
    given = {"lo": more.pop("lo", 0.0), "hi": more.pop("hi", 10.0), "missing": more.pop("missing", None)}
    streams = (
        Stream(name="a", attributes=(Attribute(name="a", **given),), **more),
        Stream(name="b", attributes=(Attribute(name="b", lo=0.0, hi=10.0),)),
    )
    group = Group(name="g", streams=streams, retention_us=60, pane_us=1, retention_rows=10)
    asked = Query(name="q", k=3, score=score, **{"window": Window(20, 5), **(query or {})})
    return bind(group, asked), group


REFUSED = (
    made(aggregate=Aggregate.SUM),
    made(aggregate=Aggregate.LATEST),
    made(hi=float("inf")),
    made("exp(a)", hi=800.0),
    made(missing=3.0),
)


@pytest.mark.parametrize("refused", REFUSED)
def test_what_cannot_be_forgotten_is_refused_with_the_reason(refused: tuple[BoundQuery, Group]) -> None:
    bound, group = refused
    with pytest.raises(NotServedError) as error:
        EaaRelaxed(bound, group)
    assert f"cannot use an algorithm that forgets, because {why_not_forget(group, bound)}" in str(error.value)


def test_the_best_of_each_column_is_on_the_side_that_ranks_better() -> None:
    assert ask(*made("a - b")).best.tolist() == [10.0, 0.0]
    assert ask(*made("a - b", query={"order": Order.LOWEST})).best.tolist() == [0.0, 10.0]
    assert ask(*made("2*a + b", aggregate=Aggregate.COUNT, repeat_after_us=20)).best.tolist() == [1.0, 10.0]


def test_promises_become_bits_of_columns() -> None:
    promises = {None: (0, 0, 0), 19: (0, 0, 0), 20: (1, 0, 0), 40: (1, 1, 0), MAX_TIME_US: (1, 1, 1)}
    for promise, bits in promises.items():
        asked = ask(*made("a + b", repeat_after_us=promise))
        assert (asked.once, asked.twice, asked.never) == bits
    in_rows = {"window": Window(5, 5, in_rows=True)}
    assert ask(*made(repeat_after_us=10_000, query=in_rows)).once == 0
    assert ask(*made(repeat_after_us=MAX_TIME_US, query=in_rows)).twice == 1
