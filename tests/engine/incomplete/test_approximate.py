"""The approximate rankings reach the published precision with the published share of instances, and know how well."""

import numpy as np
import pytest

from skyband.engine.incomplete.eaa_expected import EaaExpected
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.eaa_tail import EaaTail
from skyband.engine.incomplete.options import ApproximationOptions
from skyband.errors import DefinitionError
from skyband.model.binding import bind
from tests.engine.incomplete.distinct import Measured, asked, distinct_rows, measure
from tests.engine.incomplete.driving import ask, assert_exact, drive, steady

SIZE, SLIDE, K = 1_000, 50, 10


def measured(
    kind: type[EaaRelaxed],
    alpha: float,
    options: ApproximationOptions,
    *,
    rows: int = 8_000,
    recent: int = 100,
    repeat_after: int | None = None,
) -> Measured:
    bound, group = asked(SIZE, SLIDE, K, repeat_after=repeat_after)
    exact, ranking = EaaRelaxed(bound, group), kind(bound, group, options)
    found = measure(exact, ranking, distinct_rows(5, rows, alpha, recent=recent), SIZE, SLIDE, K)
    ranking._check()
    return found


@pytest.mark.parametrize(("recent", "precision"), [(100, 0.98), (300, 0.95)])
def test_few_complete_and_the_tail_bound_still_finds_them(recent: int, precision: float) -> None:
    for repeat_after in (None, SIZE):
        options = ApproximationOptions(max_error=0.05)
        found = measured(EaaTail, 0.1, options, rows=16_000, recent=recent, repeat_after=repeat_after)
        assert found.precision >= precision
        assert found.held <= 0.55 * found.exact_held


@pytest.mark.parametrize("recent", [100, 300])
def test_many_complete_and_the_tail_bound_finds_nearly_all(recent: int) -> None:
    # Of objects that never come again EAA itself keeps next to nothing: nearly all are complete.
    for repeat_after, share in ((None, 0.97), (SIZE, 0.8)):
        options = ApproximationOptions(max_error=0.1)
        found = measured(EaaTail, 0.5, options, recent=recent, repeat_after=repeat_after)
        assert found.precision >= 0.99
        assert found.held <= share * found.exact_held


@pytest.mark.parametrize(("alpha", "recent"), [(0.1, 100), (0.3, 500)])
def test_the_expected_bound_keeps_little_and_is_right_about_most(alpha: float, recent: int) -> None:
    found = measured(EaaExpected, alpha, ApproximationOptions(), recent=recent)
    assert 0.8 <= found.precision <= 0.95
    assert found.held < 0.6 * found.exact_held


def test_the_expected_bound_fails_where_few_complete_and_late() -> None:
    assert measured(EaaExpected, 0.1, ApproximationOptions(), recent=500).precision < 0.7


def test_epsilon_zero_is_exact() -> None:
    found = measured(EaaTail, 0.5, ApproximationOptions(max_error=0.0), rows=5_000)
    assert found == Measured(1.0, found.exact_held, found.exact_held)


def test_without_examples_the_best_case_counts() -> None:
    for seed in range(20):
        group, query, partitions = steady(seed, 60, "once")
        ranking = EaaTail(bind(group, query), group, ApproximationOptions(max_error=0.5))
        assert_exact(ranking, group, partitions)
        assert ranking.unknown_patterns == len(ranking._outlook.patterns)


def test_the_same_rows_in_other_batches_give_the_same() -> None:
    bound, group = asked(300, 20, 5)
    rows = distinct_rows(6, 3_000, 0.3)
    results = []
    for batch in (1, 7, 20):
        ranking = EaaTail(bound, group, ApproximationOptions(max_error=0.2))
        own = []
        for end in range(20, 3_001, 20):
            drive(ranking, rows, end - 20, end, end - 300, batch)
            ranked = ask(ranking, end, 300, 5)
            own.append((ranked.rank.tolist(), ranking.held, ranking.approximation))
        results.append(own)
    assert results[0] == results[1] == results[2]


def test_above_the_memory_budget_more_is_forgotten_and_below_half_of_it_less() -> None:
    bound, group = asked(SIZE, SLIDE, K)
    free = EaaTail(bound, group, ApproximationOptions(max_error=0.01))
    rows = distinct_rows(7, 12_000, 0.3)
    for end in range(SLIDE, 6_001, SLIDE):
        drive(free, rows, end - SLIDE, end, end - SIZE, SLIDE)
        ask(free, end, SIZE, K)
    budget = int(0.7 * free.used_bytes)
    tight = EaaTail(bound, group, ApproximationOptions(max_error=0.01, memory_budget=budget))
    over, used, epsilons = [], [], []
    for end in range(SLIDE, 12_001, SLIDE):
        drive(tight, rows, end - SLIDE, end, end - SIZE, SLIDE)
        ask(tight, end, SIZE, K)
        over.append(tight.over_budget)
        used.append(tight.used_bytes)
        epsilons.append(tight.epsilon)
    assert any(over)
    assert np.mean(used[100:]) < 1.05 * budget
    assert max(epsilons) > 0.01
    tight._options = ApproximationOptions(max_error=0.01, memory_budget=1_000 * budget)
    for end in range(12_000, 16_001, 250):
        tight._renew(end)
    assert tight.epsilon == 0.01
    assert not tight.over_budget


@pytest.mark.parametrize("target", [0.8, 0.98])
def test_a_target_precision_is_followed(target: float) -> None:
    bound, group = asked(SIZE, SLIDE, K)
    options = ApproximationOptions(target_precision=target)
    exact, ranking = EaaRelaxed(bound, group), EaaTail(bound, group, options)
    found = measure(exact, ranking, distinct_rows(8, 30_000, 0.3, recent=300), SIZE, SLIDE, K)
    assert found.precision >= target - 0.015
    assert found.held < found.exact_held


def test_a_precision_asked_for_lower_is_paid_with_fewer_instances() -> None:
    held = [measured(EaaTail, 0.3, ApproximationOptions(max_error=epsilon)).held for epsilon in (0.01, 0.1, 0.3)]
    assert held == sorted(held, reverse=True)
    assert held[2] < 0.8 * held[0]


@pytest.mark.parametrize(
    "options", [{"max_error": 1.0}, {"max_error": -0.1}, {"memory_budget": 0}, {"target_precision": 0.0}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(DefinitionError):
        ApproximationOptions(**options)
