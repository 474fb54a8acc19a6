"""The docs are true of the tree as far as a machine can tell: names, links and examples."""

import doctest
import importlib
import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from google.protobuf import json_format, message_factory
from pydantic import SecretStr
from pydantic_settings import BaseSettings

from services.align.settings import AlignServiceSettings
from services.control.settings import ControlSettings
from services.engine.settings import EngineSettings
from services.fanout.settings import FanoutSettings
from services.runtime import grpc_errors
from services.runtime.process import ProcessSettings
from services.runtime.registry_settings import RegistrySettings
from services.runtime.settings import KafkaSettings
from services.runtime.topics import Topics
from services.sketch.settings import SketchSettings
from skyband.cli.commands import spread
from skyband.cli.main import app
from skyband.files.definitions import load_definitions
from skyband.v1 import control_pb2, results_pb2
from tools import factory_picture

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
EXAMPLES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for folder in ("skyband", "services", "spark")
    for path in (ROOT / folder).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.\w+)?)`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

SETTINGS = (
    ProcessSettings,
    KafkaSettings,
    RegistrySettings,
    AlignServiceSettings,
    EngineSettings,
    SketchSettings,
    FanoutSettings,
    ControlSettings,
)
# Services whose events are for whoever runs them; those of `produce` and `up` are shown to whoever started these.
LOGGING = ("runtime", "align", "sketch", "engine", "control")
SERVICES = {
    found.full_name: found
    for module in (control_pb2, results_pb2)
    for found in module.DESCRIPTOR.services_by_name.values()
}


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


@pytest.mark.parametrize("module", EXAMPLES)
def test_every_example_of_a_docstring_gives_what_it_says(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert not found.failed


def test_decisions_are_numbered_without_gaps_and_short() -> None:
    assert [int(name[:4]) for name in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    lengths = {name: len((ROOT / "docs" / "decisions" / name).read_text().splitlines()) for name in DECISIONS}
    assert not {name: length for name, length in lengths.items() if length > 30}


def test_the_picture_of_the_worked_example_is_drawn_from_the_golden_case() -> None:
    assert factory_picture.PICTURE.read_text(encoding="utf-8") == factory_picture.draw()


# --- what operations.md says of services


def documented(setting: str) -> str | None:
    """Return the default that the tables give a setting, None if they do not name it."""
    row = re.search(rf"^\| `{setting}` \| (?:`([^`]*)`)? ?\|", OPERATIONS, re.MULTILINE)
    return None if row is None else row[1] or ""


def settings() -> Iterator[tuple[str, str]]:
    """Yield each setting of the services, with its default as the tables write it."""
    for kind in SETTINGS:
        for name, field in kind.model_fields.items():
            default = field.get_default(call_default_factory=True)
            yield f"{kind.model_config['env_prefix']}{name.upper()}", shown(default)


def shown(default: Any) -> str:
    if default is None or isinstance(default, SecretStr):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_every_setting_of_the_services_is_in_a_table_with_its_default() -> None:
    wrong = {name: (documented(name), default) for name, default in settings() if documented(name) != default}
    assert not wrong


def test_no_table_names_a_setting_that_is_not_there() -> None:
    named = set(re.findall(r"^\| `(SKYBAND_\w+)` \|", OPERATIONS, re.MULTILINE))
    assert named == {name for name, _ in settings()}


def test_every_kind_of_settings_of_a_service_is_looked_at() -> None:
    found = set()
    for path in (ROOT / "services").glob("*/*.py"):
        if "Settings)" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            found |= {
                value
                for value in vars(module).values()
                if isinstance(value, type) and issubclass(value, BaseSettings) and value.__module__ == module.__name__
            }
    assert found == set(SETTINGS)


def test_every_topic_is_in_the_table_with_its_partitions_and_writers() -> None:
    table = OPERATIONS.split("## Topics")[1].split("## Settings")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    found = {name.strip("`"): (partitions, kept, writers) for name, partitions, kept, _, writers, _ in rows}
    assert found.keys() == {topic.name for topic in Topics().all}
    for topic in Topics().all:
        partitions, kept, writers = found[topic.name]
        assert str(topic.partitions) in partitions, topic.name
        assert (kept == "compacted") == (topic.cleanup == "compact"), topic.name
        assert set(writers.split(", ")) == {space.writer for space in topic.keys}, topic.name


@pytest.mark.parametrize("service", LOGGING)
def test_every_event_of_a_service_is_in_the_table(service: str) -> None:
    module = importlib.import_module(f"services.{service}.events")
    events = {name: getattr(module, name) for name in module.__all__}
    missing = {name: text for name, text in events.items() if f"`{text}`" not in OPERATIONS}
    assert not missing


# --- what api.md says of the API


def test_every_call_and_every_reason_of_an_error_is_named() -> None:
    calls = {call.name for service in SERVICES.values() for call in service.methods}
    reasons = {reason for _, _, reason in grpc_errors._KINDS} | {its.value[1] for its in grpc_errors.Conflict}
    assert not {name for name in calls | reasons if f"`{name}`" not in API}


def grpcurl_calls() -> list[list[str]]:
    lines = [line for _, code in examples("sh") for line in code.splitlines() if line.startswith("grpcurl")]
    return [shlex.split(line) for line in lines]


def test_every_call_by_hand_is_one_that_the_service_reads() -> None:
    checked = 0
    for words in grpcurl_calls():
        service, _, call = words[-1].partition("/")
        if service not in SERVICES:
            continue
        request = message_factory.GetMessageClass(SERVICES[service].methods_by_name[call].input_type)()
        json_format.Parse(words[words.index("-d") + 1] if "-d" in words else "{}", request)
        checked += 1
    assert checked >= 5


# --- commands


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Return the commands of shell examples that begin with `program`, as words without comments."""
    lines = [(page, line) for page, code in examples("sh") for line in code.splitlines()]
    words = [(page, shlex.split(line.rstrip("& "), comments=True)) for page, line in lines if line.startswith(program)]
    return [(page, its) for page, its in words if its[0] == program]


def wrong_words(words: list[str]) -> str | None:
    """Return what `skyband` would not understand of a command, None if there is nothing."""
    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            return rest[0] if rest else "nothing"
        command, rest = command.commands[rest[0]], rest[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return next((word for word in spread(rest, "-f") if word.startswith("-") and word not in known | {"--help"}), None)


def test_every_command_is_there_with_its_options() -> None:
    found = commands("skyband")
    assert len(found) > 20
    assert not {" ".join(words): wrong for _, words in found if (wrong := wrong_words(words)) is not None}


def test_every_target_of_make_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {words[1] for _, words in commands("make")} <= targets


def test_every_module_that_is_run_is_there() -> None:
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in [*PAGES, "CONTRIBUTING.md"]]
    modules = {name for text in texts for name in re.findall(r"python -m ((?:services|tools|skyband)\.[\w.]*\w)", text)}
    assert len(modules) > 5
    assert not {name for name in modules if importlib.util.find_spec(name) is None}


def test_a_wrong_command_and_a_wrong_option_are_seen() -> None:
    assert wrong_words(["skyband", "queries", "wacth"]) == "wacth"
    assert wrong_words(["skyband", "queries", "watch", "a/b", "--limits", "3"]) == "--limits"
    assert wrong_words(["skyband", "queries", "watch", "a/b", "--limit", "3"]) is None


def test_a_wrong_link_a_wrong_path_and_a_wrong_anchor_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two` Three\n[a](no.md) [b](#one-two-three) [c](#four) `no/such.py` `no/such/`\n")
    assert list(broken_links(str(page))) == ["no.md", "#four"]
    assert PATH.findall(prose(str(page))) == ["no/such.py", "no/such/"]
