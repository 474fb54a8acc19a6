"""What belongs to an archive: a row of commits, each written at once and never changed.

Words: a *commit* adds files and takes others away, and says how far the log is archived now. Its *number* is one more
than that of the commit before it; who comes second with a number has to look again. A *whole* says all that the commits
up to its number say together, so that nobody has to read them from the first.

Initially there is no commit. Invariant: a file that a commit adds was complete before the commit was written, so a
writer that is killed leaves files that nobody reads, and nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from skyband.errors import ConflictError, LogError
from spark.archive_files import ArchiveFiles
from spark.archive_layout import ArchiveFile

__all__ = ["ARCHIVED", "COMPACTED", "Change", "CommitLog", "State", "archived"]

ARCHIVED, COMPACTED = "archived", "compacted"
VERSION = 1
_FOLDER = "commits"
_NAME = re.compile(rf"{_FOLDER}/(\d+)(\.whole)?\.json")
# A reader opens at most so many files.
_WHOLE_EVERY = 50
# What else than files commits carry: keys with values, of which the newest counts.
_NOTES = ("shards", "sources", "topics", "definitions")

Notes = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit says.

    `shards` by ``<topic>/<partition>`` of the aligned log: next aligned offset and coverage. `sources` by
    ``<group>/<stream>/<partition>``: next offset. `topics`: id of each topic by name. `definitions`: the catalog's
    record of each ``<group>/<generation>``.
    """

    kind: str
    added: Sequence[ArchiveFile] = ()
    removed: Sequence[str] = ()
    shards: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    topics: Mapping[str, Any] = field(default_factory=dict)
    definitions: Mapping[str, Any] = field(default_factory=dict)
    forgotten: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class State:
    """All that commits say up to `number`, 0 for none; `removed`: when files were taken away that may lie there."""

    number: int = 0
    files: dict[str, ArchiveFile] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    shards: Notes = field(default_factory=dict)
    sources: Notes = field(default_factory=dict)
    topics: Notes = field(default_factory=dict)
    definitions: Notes = field(default_factory=dict)

    def apply(self, number: int, commit: Mapping[str, Any]) -> None:
        """Go on by one commit."""
        self.number = number
        for path in commit["remove"]:
            self.files.pop(path, None)
            self.removed[path] = commit["written_us"]
        for path in commit["forget"]:
            self.removed.pop(path, None)
        for its in commit["add"]:
            self.files[its["path"]] = ArchiveFile(**its)
        for name in _NOTES:
            getattr(self, name).update(commit[name])


def archived(
    state: State,
    reports: Iterable[Mapping[str, Any]],
    topics: Mapping[str, Any] = MappingProxyType({}),
    definitions: Mapping[str, Any] = MappingProxyType({}),
) -> Change | None:
    """Return what tasks have archived beyond `state`, as a commit shall say it; None if that is nothing."""
    added: list[ArchiveFile] = []
    found: dict[str, dict[str, Any]] = {"shards": {}, "sources": {}}
    for report in reports:
        if getattr(state, report["kind"]).get(report["key"]) != report["state"]:
            found[report["kind"]][report["key"]] = report["state"]
            added += report["files"]
    change = Change(
        kind=ARCHIVED,
        added=added,
        shards=found["shards"],
        sources=found["sources"],
        topics=_news(state.topics, topics),
        definitions=_news(state.definitions, definitions),
    )
    is_empty = not (added or change.shards or change.sources or change.topics or change.definitions)
    return None if is_empty else change


def _news(known: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if known.get(key) != value}


class CommitLog:
    """The commits of one archive; any number of processes may read it, and write it in turn."""

    def __init__(self, files: ArchiveFiles) -> None:
        self._files = files

    def load(self) -> State:
        """Return what the archive holds now. Cost: one whole and the commits behind it.

        Raises LogError for a commit that a newer release has written, or that is missing.
        """
        commits, wholes = self._numbers()
        state = self._whole(wholes[-1]) if wholes else State()
        for number in commits:
            if number > state.number:
                if number != state.number + 1:
                    raise self._damaged(f"commit {state.number + 1} is missing")
                state.apply(number, self._read(self._path(number)))
        return state

    def append(self, state: State, change: Change, now_us: int) -> State:
        """Write `change`, decided on `state`, and return the state behind it.

        What another process has done meanwhile is taken along if it does not contradict: compaction beside archiving.
        Raises ConflictError if it does, and nothing is changed.
        """
        commit = self._form(change, now_us)
        while True:
            number = state.number + 1
            data = json.dumps({"number": number, **commit}, separators=(",", ":")).encode()
            if self._files.create(self._path(number), data):
                break
            others = self._read(self._path(number))
            self._check(change, others)
            state.apply(number, others)
        state.apply(number, commit)
        if number % _WHOLE_EVERY == 0:
            self._write_whole(state)
        return state

    def _check(self, change: Change, others: Mapping[str, Any]) -> None:
        if change.kind == ARCHIVED and others["kind"] == ARCHIVED:
            raise ConflictError(
                f"another process archives to {self._files.uri} too; let one do it, for all groups: what this one has "
                "read is not committed, and nothing is lost"
            )
        if set(change.removed) & set(others["remove"]):
            raise ConflictError(
                f"another process compacts {self._files.uri} too; nothing is lost, run it again when that has ended"
            )

    def _form(self, change: Change, now_us: int) -> dict[str, Any]:
        return {
            "version": VERSION,
            "kind": change.kind,
            "written_us": now_us,
            "rows": sum(its.rows for its in change.added if its.kind == "rows"),
            "add": [its.to_json() for its in change.added],
            "remove": list(change.removed),
            "forget": list(change.forgotten),
            **{name: dict(getattr(change, name)) for name in _NOTES},
        }

    def _numbers(self) -> tuple[list[int], list[int]]:
        commits: list[int] = []
        wholes: list[int] = []
        for found in self._files.list(_FOLDER):
            if match := _NAME.fullmatch(found.path):
                (wholes if match[2] else commits).append(int(match[1]))
        return sorted(commits), sorted(wholes)

    def _path(self, number: int, *, whole: bool = False) -> str:
        return f"{_FOLDER}/{number:010}{'.whole' if whole else ''}.json"

    def _read(self, path: str) -> dict[str, Any]:
        try:
            commit: dict[str, Any] = json.loads(self._files.read(path))
            version = commit["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"{path} is no commit ({error})") from None
        if version != VERSION:
            raise LogError(
                f"{path} of the archive {self._files.uri} has version {version}, this release reads {VERSION}; run the "
                "release that wrote it, or a newer one"
            )
        return commit

    def _whole(self, number: int) -> State:
        found = self._read(self._path(number, whole=True))
        files = {its["path"]: ArchiveFile(**its) for its in found["files"]}
        return State(number=number, files=files, removed=found["removed"], **{name: found[name] for name in _NOTES})

    def _write_whole(self, state: State) -> None:
        """Write all that is known, and delete what nobody needs since the whole before this one."""
        whole = {
            "version": VERSION,
            "files": [its.to_json() for its in state.files.values()],
            "removed": state.removed,
            **{name: getattr(state, name) for name in _NOTES},
        }
        self._files.create(self._path(state.number, whole=True), json.dumps(whole, separators=(",", ":")).encode())
        for path in self._outdated():
            self._files.delete(path)

    def _outdated(self) -> Iterator[str]:
        commits, wholes = self._numbers()
        # A reader may just have listed the whole before the newest.
        for number in wholes[:-2]:
            yield self._path(number, whole=True)
        for number in commits:
            if len(wholes) > 1 and number <= wholes[-2]:
                yield self._path(number)

    def _damaged(self, what: str) -> LogError:
        return LogError(f"the archive {self._files.uri} is damaged: {what}; restore the folder commits from a copy")
