"""Whether kernels give the same bits compiled and interpreted: a test file runs both ways, and prints what it found."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import skyband

__all__ = ["assert_same_interpreted", "print_digest"]


def assert_same_interpreted(file: str, *, warnings: str = "error::RuntimeWarning") -> str:
    """Assert that `file`, run as a script that calls `print_digest`, prints the same either way, unwarned; return it.

    `warnings`: which warnings end the script, as Python's -W takes it.
    """
    root = str(Path(skyband.__file__).parent.parent)
    printed = [
        subprocess.run(
            [sys.executable, "-W", warnings, file],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for disabled in ("0", "1")
    ]
    assert [words[0] for words in printed] == ["compiled", "interpreted"]
    assert printed[0][1] == printed[1][1]
    return printed[0][1]


def print_digest(digest: Callable[[], str]) -> None:
    """Print how kernels run in this process, and the digest."""
    print("interpreted" if os.environ["NUMBA_DISABLE_JIT"] == "1" else "compiled", digest())
