"""What `spark-submit` is given: one program for all jobs."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from spark.submit import JOBS, submitted

ROOT = Path(__file__).resolve().parents[2]


def test_every_job_is_a_module_with_a_main() -> None:
    for job in JOBS:
        assert importlib.util.find_spec(f"spark.{job}") is not None
        assert callable(importlib.import_module(f"spark.{job}").main)


def test_without_a_job_it_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert submitted(["archives"]) == 2
    assert "one of archive, " in capsys.readouterr().err


def test_its_folder_hides_no_module_of_the_same_name(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "spark" / "submit.py", "archive", "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert "--archive" in run.stdout
