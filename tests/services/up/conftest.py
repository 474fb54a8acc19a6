"""A claimed folder, and children that are watched."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.up.folders import Folders
from services.up.plan import Program
from tests.services.up.stand_ins import Watched


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """A folder that was claimed and given back."""
    made = Folders(tmp_path / "up")
    os.close(made.claim())
    return made


@pytest.fixture
def watch(folders: Folders) -> Callable[[Program], Watched]:
    """Make a watched child."""
    return lambda stand_in: Watched(folders, stand_in)
