"""One line says how far long work is."""

import io

import pytest

from spark.progress import WorkProgress


class Watch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_comes_now_and_then_and_a_last_one_at_the_end() -> None:
    watch, stream = Watch(), io.StringIO()
    with WorkProgress("archive", stream=stream, clock=watch) as progress:
        for second in range(1, 13):
            watch.seconds = second
            progress.update(second * 1_000, second / 20)
    assert stream.getvalue().splitlines() == [
        "archive: 10,000 rows · 1,000 rows/s · 50 %",
        "archive: 12,000 rows · 1,000 rows/s · 60 %",
    ]


def test_a_share_that_is_not_known_is_not_told() -> None:
    watch = Watch()
    progress = WorkProgress("rebuild", stream=io.StringIO(), clock=watch)
    watch.seconds = 2.0
    progress.update(1)
    assert progress.line() == "rebuild: 1 row · 0 rows/s"


def test_work_without_rows_is_told_without_them() -> None:
    stream = io.StringIO()
    with WorkProgress("audit", has_rows=False, stream=stream, clock=Watch()) as progress:
        progress.work = "audited group factory"
    assert stream.getvalue() == "audited group factory\n"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    watch = Watch()
    progress = WorkProgress("audit", stream=io.StringIO(), clock=watch)
    for second, rows in ((1, 1_000), (2, 1_000), (3, 6_000)):
        watch.seconds = second
        progress.update(rows)
        said = progress.line()
    assert said == "audit: 6,000 rows · 5,000 rows/s"


def test_work_that_fails_says_no_last_line() -> None:
    stream = io.StringIO()

    def work() -> None:
        with WorkProgress("audit", stream=stream, clock=Watch()) as progress:
            progress.update(5)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        work()
    assert stream.getvalue() == ""


def test_a_terminal_has_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with WorkProgress("audit", stream=stream, clock=Watch()) as progress:
        progress.update(7, 0.5)
        progress._live.refresh()  # type: ignore[union-attr]
    assert "audit: 7 rows · 0 rows/s · 50 %" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")
