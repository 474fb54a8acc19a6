"""The folder of one `up`: one at a time has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.up.folders import Folders, stop_running
from skyband.errors import ConflictError, SkybandError
from tests.services.up.stand_ins import until

ROOT = Path(__file__).resolve().parents[3]
OWNER = """
import pathlib, sys, signal
from services.up.folders import Folders
Folders(pathlib.Path(sys.argv[1])).claim()
print("claimed", flush=True)
signal.pause()
"""


def test_a_second_claim_is_refused_with_who_has_it(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    held = folders.claim()
    with pytest.raises(ConflictError, match=r"already up on .* \(still starting\)"):
        folders.claim()
    folders.write_ready("up", {"pid": 17, "control": "127.0.0.1:50051"})
    with pytest.raises(
        ConflictError, match=r"\(process 17, control at 127\.0\.0\.1:50051\); stop it with `skyband down`"
    ):
        folders.claim()
    os.close(held)
    os.close(folders.claim())
    assert folders.read_ready("up") == {}


def test_stopping_ends_the_process_that_has_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "claimed\n"
        assert stop_running(Folders(tmp_path))
        until(lambda: owner.poll() is not None)
    assert not stop_running(Folders(tmp_path))


def test_where_nothing_ever_was_nothing_is_stopped(tmp_path: Path) -> None:
    assert not stop_running(Folders(tmp_path / "none"))
    assert not list(tmp_path.iterdir())


def test_who_is_no_up_is_not_stopped(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    held = folders.claim()
    os.truncate(held, 0)
    with pytest.raises(SkybandError, match="no `skyband up`"):
        stop_running(folders)
    os.close(held)


def test_a_fresh_start_forgets_records_logs_and_marks_and_nothing_else(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    os.close(folders.claim())
    (folders.kafka / "data").mkdir(parents=True)
    for path in (folders.log("engine"), folders.demo_sent, tmp_path / "of-somebody-else"):
        path.touch()
    folders.forget()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "logs", "of-somebody-else", "run"]
    assert not list((tmp_path / "logs").iterdir())


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_ready_file_that_is_none_says_nothing(folders: Folders, content: str) -> None:
    folders.ready("engine").write_text(content)
    assert folders.read_ready("engine") == {}
