"""The command line of the archive: help, wrong words, and compaction alone."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from skyband.cli.failures import run_as_command
from spark.archive import main
from tests.spark.archive_logs import Archive, group_of, resource_of, seeded_log


def typed(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_as_command(main, words)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def test_help_shows_examples() -> None:
    code, out, _ = typed("--help")
    assert code == 0
    assert "examples:\n    python -m spark.archive --archive /data/archive\n" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--archive", "a", "--trigger", "soon"), "--trigger soon: "),
        (("--archive", "nowhere://x", "--compact"), "archive 'nowhere://x' is no place for files"),
        ((), "Missing option '--archive'"),
    ],
)
def test_what_is_asked_wrongly_ends_with_2_and_a_sentence(words: tuple[str, ...], said: str) -> None:
    code, _, err = typed(*words)
    assert (code, said in err) == (2, True)


def test_compaction_alone_needs_neither_kafka_nor_spark(tmp_path: Path) -> None:
    group = group_of()
    log = seeded_log(1, group)
    archive = Archive(str(tmp_path))
    for offset in range(0, 30, 5):
        archive.write(log[offset : offset + 5], resource_of(group, 1), first=offset)
    code, _, err = typed("--archive", str(tmp_path), "--compact")
    assert (code, err.startswith("compacted ")) == (0, True)
    assert archive.state.number > 6
