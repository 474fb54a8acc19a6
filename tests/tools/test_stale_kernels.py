import os
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

from tools import stale_kernels

KERNEL = "from numba import njit\nfrom skyband.structures.order import before\n\n@njit\ndef rank(): ...\n"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in which rank.py imports order.py, which imports limits.py; the file that numba wrote for rank.py."""
    folder = tmp_path / "skyband" / "structures"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "rank.py").write_text(KERNEL)
    (folder / "order.py").write_text("from numba import njit\nfrom skyband.structures import limits\n")
    (folder / "limits.py").write_text("LARGEST = 1\n")
    (folder / "apart.py").write_text("from numba import njit\n")
    monkeypatch.setattr(stale_kernels, "ROOT", tmp_path)
    monkeypatch.setattr(stale_kernels, "REMEMBERED", tmp_path / ".kernels" / "sources.json")
    stale_kernels.forget_stale()
    for name in ("rank.rank-4.py311.nbi", "apart.other-1.py311.nbi"):
        (folder / "__pycache__" / name).touch()
    return folder / "__pycache__" / "rank.rank-4.py311.nbi"


def test_kernels_stay_while_nothing_changed(compiled: Path) -> None:
    assert stale_kernels.forget_stale() == []
    assert compiled.exists()


@pytest.mark.parametrize("changed", ["rank.py", "order.py", "limits.py"])
def test_a_kernel_is_forgotten_when_anything_it_imports_changed(compiled: Path, changed: str) -> None:
    source = compiled.parent.parent / changed
    source.write_text(source.read_text() + "OTHER = 2\n")
    assert "skyband/structures/rank.py" in stale_kernels.forget_stale()
    assert not compiled.exists()
    assert compiled.with_name("apart.other-1.py311.nbi").exists()


def test_a_file_that_does_not_parse_is_left_to_its_importer(compiled: Path) -> None:
    (compiled.parent.parent / "order.py").write_text("def (:\n")
    assert stale_kernels.forget_stale() == ["skyband/structures/rank.py"]


def test_copies_lie_where_numba_looks_and_are_made_anew_when_the_originals_are(compiled: Path, tmp_path: Path) -> None:
    data = compiled.with_name("rank.rank-4.py311.1.nbc")
    data.write_bytes(b"first")
    copies = tmp_path / "copies"
    stale_kernels.copy_compiled(copies)
    there = copies / _CacheLocator.get_suitable_cache_subpath(str(compiled.parent.parent / "rank.py"))
    assert (there / data.name).read_bytes() == b"first"
    (there / data.name).write_bytes(b"of the copy's own process")
    stale_kernels.copy_compiled(copies)
    assert (there / data.name).read_bytes() == b"of the copy's own process"
    data.write_bytes(b"second")
    os.utime(compiled, (compiled.stat().st_atime, compiled.stat().st_mtime + 1))
    stale_kernels.copy_compiled(copies)
    assert (there / data.name).read_bytes() == b"second"
    assert (there / compiled.name).exists()
