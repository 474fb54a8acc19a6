"""What objects could reach: read from the store for all at once, or for rows that are known."""

import hashlib
import math
from random import Random

import numpy as np
import pytest

from skyband.local.brute_force_score import scorer
from skyband.model.stream import Aggregate
from skyband.structures.best_case import BestCase, Cases, best_scores, first_cases, read_cases
from skyband.structures.question import Question
from tests.interpreted import assert_same_interpreted, print_digest
from tests.structures.store_model import Given, StoreModel, ask, group_of

SCORE = "a + 2*b - c"
BEST = {"a": 1_000.0, "b": math.inf, "c": 0.0}


def case(*final: int, best: tuple[float, ...] = (1_000.0, math.inf, 0.0), required: int = 0) -> BestCase:
    """Return a case of three columns, all in the score; `final` are places of those that stay as they are."""
    return BestCase(np.array(best), sum(1 << place for place in final), 0b111, required)


def filled(seed: int, count: int = 120) -> StoreModel:
    random = Random(seed)
    model = StoreModel(group_of(Aggregate.MAX, Aggregate.SUM, Aggregate.LATEST))
    model.expire(0)

    def row(i: int) -> Given:
        return random.randrange(3), f"object-number-{random.randrange(25)}", i // 2, (float(random.randint(0, 9)),)

    model.apply([row(i) for i in range(count)])
    return model


def read(model: StoreModel, question: Question, of: BestCase, low: int, stack_size: int = 8) -> Cases:
    live = model.store.objects.live
    ints, floats = (lambda: np.zeros(live, np.int64)), (lambda: np.zeros(live))
    out = Cases(np.zeros(live, np.int32), ints(), ints(), floats(), floats())
    scratch = np.zeros((2, len(question.streams)))
    found = read_cases(
        model.store.objects.arrays, model.store.arrays, question, of, low, np.zeros(stack_size), scratch, out
    )
    return Cases(*(column[:found] for column in out))  # type: ignore[arg-type]


@pytest.mark.parametrize("final", [(), (0,), (1,), (0, 1), (0, 1, 2)])
def test_every_object_of_the_window_is_read_with_what_it_could_reach(final: tuple[int, ...]) -> None:
    evaluate = scorer(SCORE)
    for seed in range(5):
        model, low = filled(seed), seed % 3
        bound = ask(model.group, SCORE)
        of = case(*final)
        found = read(model, model.question(bound), of, low)
        by_slot = dict(zip(found.slot.tolist(), zip(*(c.tolist() for c in found[1:]), strict=True), strict=True))
        names = {seen.object_id for tick, seen in model.rows if tick >= low}
        assert by_slot.keys() == {model.slot(name) for name in names}
        for name in names:
            own = [(tick, seen) for tick, seen in model.rows if tick >= low and seen.object_id == name]
            values = {"a": 0.0, "b": 0.0, "c": 1_000.0}
            present = 0
            for place, column in enumerate("abc"):
                seen = [row for _, row in own if row.stream == place]
                if seen:
                    present |= 1 << place
                    given = [row.values[0] for row in seen]
                    values[column] = (max(given), sum(given), max(seen, key=lambda row: (row.event, row)).values[0])[
                        place
                    ]
            best = {c: values[c] if p in final and present >> p & 1 else BEST[c] for p, c in enumerate("abc")}
            could = evaluate(best)
            expected = (
                *(min(tick for tick, _ in own), present, evaluate(values)),
                could if math.isfinite(could) else math.inf,
            )
            assert by_slot[model.slot(name)] == expected


def test_an_object_that_lacks_a_required_column_has_no_score_now() -> None:
    model = StoreModel(group_of(Aggregate.MAX, Aggregate.MAX, Aggregate.MAX))
    model.expire(0)
    model.apply([(0, "a", 5, (3.0,)), (0, "b", 15, (3.0,)), (1, "b", 25, (3.0,))])
    question = model.question(ask(model.group, SCORE))
    found = read(model, question, case(best=(9.0, 9.0, 0.0), required=0b010), 0)
    assert found.rank.tolist() == [-math.inf, 3.0 + 6.0 - 1_000.0]
    assert found.best.tolist() == [27.0, 27.0]
    assert found.tick.tolist() == [0, 1]


def test_what_is_unknown_counts_as_unbounded_unless_nothing_is_left_to_come() -> None:
    model = StoreModel(group_of(Aggregate.SUM, Aggregate.SUM, Aggregate.SUM))
    model.expire(0)
    model.apply([(place, "a", 5, (0.0,)) for place in range(3)])
    question = model.question(ask(model.group, "a / b + c*0"))
    assert read(model, question, case(0, 1, best=(1.0, 1.0, math.nan)), 0).best.tolist() == [math.inf]
    assert len(read(model, question, case(0, 1, 2), 0).best) == 0  # 0 / 0, and it stays so


def test_rows_that_are_known_reach_what_is_settled_and_the_best_of_all_else() -> None:
    bound = ask(group_of(Aggregate.MAX, Aggregate.SUM, Aggregate.LATEST), SCORE)
    values = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-0.0, 0.0, 0.0]])
    bits, out, scratch = np.array([0b011, 0b111, 0b111]), np.zeros(3), np.zeros(3)
    program = bound.score.code, bound.score.constants, np.zeros(8)
    best_scores(*program, values, case().best, bits, 0b111, scratch, out)
    assert out.tolist() == [5.0, 2.0, 0.0]
    best_scores(*program, values, case().best, bits, 0b101, scratch, out)
    assert str(out.tolist()) == "[nan, nan, nan]"
    best_scores(*program, values, case(best=(9.0, 8.0, 7.0)).best, bits, 0b101, scratch, out)
    assert out.tolist() == [1.0 + 16.0 - 7.0, 1.0 + 16.0 - 3.0, 16.0]


@pytest.mark.parametrize("most", [1, 4, 100])
def test_the_first_cases_are_kept_by_best_score_and_id(most: int) -> None:
    model, random = filled(7, 300), Random(most)
    names = {model.slot(name): name for name in {seen.object_id for _, seen in model.rows}}
    slot = np.array(list(names), np.int32)
    best = np.array([random.choice([math.inf, 2.0, 1.0]) for _ in slot])
    heap, where = np.zeros(min(most, len(slot)), np.int32), np.full(model.store.objects.capacity, -1, np.int32)
    kept = heap[: first_cases(model.store.objects.arrays, best, slot, heap, where)]
    order = sorted(range(len(slot)), key=lambda i: (-best[i], names[int(slot[i])].encode()))
    assert sorted(kept.tolist()) == sorted(order[:most])
    assert (where == -1).all()


def digest() -> str:
    """Return a hash of what a few stores' objects could reach, to the last bit."""
    found = hashlib.sha256()
    for seed in range(4):
        model = filled(seed, 300)
        bound = ask(model.group, "sqrt(a) + exp(b/9) - c", lowest=seed % 2 == 1)
        cases = read(model, model.question(bound), case(1, 2, best=(0.1, 0.2, 0.3)), seed)
        found.update(b"".join(column.tobytes() for column in cases))
        values, out = np.arange(30.0).reshape(10, 3) / 7, np.zeros(10)
        program = bound.score.code, bound.score.constants
        best_scores(*program, np.zeros(8), values, case().best, np.arange(10) % 8, seed, np.zeros(3), out)
        found.update(out.tobytes())
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_bits() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
