"""A question reads an object as its query is defined: columns, missing values, requirements."""

import numpy as np
import pytest

from skyband.errors import NotServedError
from skyband.model.binding import MAX_COLUMNS
from skyband.model.group import Group
from skyband.model.query import Query, Window
from skyband.model.stream import Aggregate, Attribute, Stream
from skyband.structures.question import read_object
from skyband.structures.score_kernel import evaluate_one
from tests.structures.store_model import StoreModel, ask, group_of


def test_columns_that_are_not_there_count_as_missing_and_are_not_present() -> None:
    model = StoreModel(group_of(Aggregate.SUM, Aggregate.BEST, Aggregate.MAX))
    model.expire(0)
    model.apply([(2, "a", 5, (7.0,)), (0, "b", 5, (2.0,))])
    bound = ask(model.group, "a + c - b")
    question, values = model.question(bound), np.full(3, np.nan)
    assert read_object(model.store.arrays, question, model.slot("a"), 0, values) == 0b100
    assert values.tolist() == [0.0, 1_000.0, 7.0]  # the sum of nothing, the worst b, c
    assert read_object(model.store.arrays, question, model.slot("b"), 0, values) == 0b001
    assert read_object(model.store.arrays, question, model.slot("b"), 1, values) == 0


def test_the_best_of_one_attribute_is_its_largest_for_one_question_and_its_smallest_for_another() -> None:
    model = StoreModel(group_of(Aggregate.BEST, widths=(2,)))
    model.expire(0)
    model.apply([(0, "a", time, (float(time), 100.0 - time)) for time in (5, 15, 3, 27)])
    values = np.zeros(2)
    for score, lowest, expected in (
        ("a0 - a1", False, [27.0, 73.0]),
        ("a0 - a1", True, [3.0, 97.0]),
        ("a0 + a1", True, [3.0, 73.0]),
    ):
        question = model.question(ask(model.group, score, lowest=lowest))
        assert read_object(model.store.arrays, question, model.slot("a"), 0, values) == 0b11
        assert values.tolist() == expected


def test_required_streams_need_an_entry_each_in_the_window() -> None:
    model = StoreModel(group_of(Aggregate.BEST, Aggregate.LATEST, Aggregate.COUNT))
    model.expire(0)
    model.apply([(0, "a", 5, (1.0,)), (1, "a", 15, (2.0,)), (2, "a", 25, (3.0,))])
    values, slot = np.zeros(3), model.slot("a")
    every = model.question(ask(model.group, "a", require_all=True))
    assert [int(read_object(model.store.arrays, every, slot, low, values)) for low in (0, 1, 3)] == [0b111, 0, 0]
    last = model.question(ask(model.group, "a", require=("c",)))
    assert [int(read_object(model.store.arrays, last, slot, low, values)) for low in (0, 1, 3)] == [0b11, 0b10, 0]
    # What only the requirement names is shown, not scored.
    assert read_object(model.store.arrays, last, slot, 2, values) == 0b10
    assert values[:2].tolist() == [0.0, 1.0]


def test_the_score_program_reads_the_columns_of_the_question() -> None:
    model = StoreModel(group_of(Aggregate.MAX, Aggregate.MAX, Aggregate.MAX, Aggregate.MAX))
    bound = ask(model.group, "d*10 + b", require=("c",))
    question = model.question(bound)
    assert [column.name for column in bound.columns] == ["b", "c", "d"]
    stack = np.zeros(bound.score.stack_size)
    assert evaluate_one(question.code, question.constants, stack, np.array([1.0, 5.0, 2.0])) == 21.0
    assert bound.score.code.tolist() != question.code.tolist()  # the query's own program is not touched


def test_more_columns_than_fit_are_refused() -> None:
    def stream(width: int) -> Stream:
        names = [f"a{i}" for i in range(width)]
        return Stream(name="s", attributes=tuple(Attribute(name=n) for n in names), is_object_stream=True)

    for width in (MAX_COLUMNS, MAX_COLUMNS + 1):
        group = Group(name="g", streams=(stream(width),), retention_us=8, pane_us=1)
        model = StoreModel(group)
        model.expire(0)
        model.apply([(0, "a", 0, (1.0,) * width)])
        if width > MAX_COLUMNS:
            with pytest.raises(NotServedError, match="reads 63 attributes"):
                ask(group, "a0", require=("s",))
        else:
            bound = ask(group, "a0", require=("s",))
            values = np.zeros(width)
            assert (
                read_object(model.store.arrays, model.question(bound), model.slot("a"), 0, values) == (1 << width) - 1
            )


def test_a_sum_adds_panes_oldest_first() -> None:
    model = StoreModel(group_of(Aggregate.SUM))
    model.expire(0)
    big, small = 2.0**53, 1.0
    # Within each pane in total order, then panes: (big + small) + (small + small), not big + (small + …).
    model.apply([(0, "a", 15, (small,)), (0, "a", 5, (big,)), (0, "a", 16, (small,)), (0, "a", 6, (small,))])
    values = np.zeros(1)
    read_object(model.store.arrays, model.question(ask(model.group, "a")), model.slot("a"), 0, values)
    assert values[0] == (big + small) + (small + small) != big + small + small + small


def test_windows_of_a_query_do_not_matter_to_what_is_read() -> None:
    group = group_of(Aggregate.BEST)
    queries = [Query(name="q", k=1, score="a", window=Window(size, 10)) for size in (10, 80)]
    model = StoreModel(group)
    questions = [model.question(ask(group, query.score)) for query in queries]
    assert all((one == other).all() for one, other in zip(questions[0][:-1], questions[1][:-1], strict=True))
