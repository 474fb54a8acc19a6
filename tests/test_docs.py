"""The docs are true of the tree as far as a machine can tell: names, links and examples."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyband.files.definitions import load_definitions
from tools import factory_picture

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.\w+)?)`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """Return what a link into a page may name: its headings as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: str) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def examples(language: str) -> list[tuple[str, str]]:
    pages = [(page, (ROOT / page).read_text(encoding="utf-8")) for page in PAGES]
    return [(page, code) for page, text in pages for kind, code in FENCE.findall(text) if kind == language]


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page: str) -> None:
    assert not list(broken_links(page))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_folder_named_is_there(page: str) -> None:
    assert not [name for name in PATH.findall(prose(page)) if not (ROOT / name).exists()]


@pytest.mark.parametrize(("page", "text"), examples("yaml"))
def test_every_definitions_example_loads(page: str, text: str) -> None:
    assert load_definitions(text).queries


@pytest.mark.parametrize(("page", "code"), examples("python"))
def test_every_python_example_compiles(page: str, code: str) -> None:
    compile(code, page, "exec")


@pytest.mark.parametrize(("page", "lines"), examples("json"))
def test_every_json_example_is_json_lines(page: str, lines: str) -> None:
    assert all(isinstance(json.loads(line), dict) for line in lines.splitlines())


def test_decisions_are_numbered_without_gaps_and_short() -> None:
    assert [int(name[:4]) for name in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    lengths = {name: len((ROOT / "docs" / "decisions" / name).read_text().splitlines()) for name in DECISIONS}
    assert not {name: length for name, length in lengths.items() if length > 30}


def test_the_picture_of_the_worked_example_is_drawn_from_the_golden_case() -> None:
    assert factory_picture.PICTURE.read_text(encoding="utf-8") == factory_picture.draw()


def test_a_wrong_link_a_wrong_path_and_a_wrong_anchor_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two` Three\n[a](no.md) [b](#one-two-three) [c](#four) `no/such.py` `no/such/`\n")
    assert list(broken_links(str(page))) == ["no.md", "#four"]
    assert PATH.findall(prose(str(page))) == ["no/such.py", "no/such/"]
