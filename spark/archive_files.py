"""Where an archive lies: a folder of any filesystem that pyarrow knows, local or an object store."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from skyband.errors import DefinitionError, LogError

__all__ = ["ArchiveFiles", "Found"]


@dataclass(frozen=True, slots=True)
class Found:
    """A file below a folder: its path from the root, its size, and when it was last written (0: not known)."""

    path: str
    size: int
    written_us: int


class ArchiveFiles:
    """Files below one root, named by paths from it with ``/``. Any number of threads and processes may use it.

    Failures of the filesystem are LogError.
    """

    def __init__(self, uri: str) -> None:
        """Open the root at a local path or an address such as ``s3://bucket/archive``."""
        self.uri = uri
        try:
            if "://" in uri:
                self.filesystem, self.root = fs.FileSystem.from_uri(uri)
            else:
                self.filesystem, self.root = fs.LocalFileSystem(), os.path.abspath(uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DefinitionError(
                f"archive {uri!r} is no place for files ({error}); name a folder, or an address such as "
                "s3://bucket/folder",
                field="archive",
            ) from None
        self.root = self.root.rstrip("/")
        self.is_local = isinstance(self.filesystem, fs.LocalFileSystem)

    def full(self, path: str) -> str:
        """Return the name of a file for this filesystem."""
        return f"{self.root}/{path}"

    def address(self, path: str) -> str:
        """Return the name of a file for other programs: a local path, or an address of the same kind as the root's."""
        return self.full(path) if self.is_local else f"{self.uri.rstrip('/')}/{path}"

    def open_input(self, path: str) -> Any:
        """Return a file to be read from anywhere."""
        with self._told("read", path):
            return self.filesystem.open_input_file(self.full(path))

    def open_output(self, path: str) -> Any:
        """Return a file to be written from its beginning; folders above it are made."""
        with self._told("write", path):
            self._make_folder(path)
            return self.filesystem.open_output_stream(self.full(path))

    def keep(self, path: str) -> None:
        """Return when a written file outlives a loss of power, as far as this filesystem can say."""
        if self.is_local:
            with self._told("write", path):
                _sync(self.full(path))
                _sync(os.path.dirname(self.full(path)))

    def read(self, path: str) -> bytes:
        """Return all of a file."""
        with self.open_input(path) as file, self._told("read", path):
            return bytes(file.read())

    def create(self, path: str, data: bytes) -> bool:
        """Write a whole file at once unless it is there; return whether it was written.

        A reader sees all of it or nothing. Of two writers of a local file exactly one succeeds; on an object store the
        later one wins where both began before either had ended.
        """
        with self._told("write", path):
            self._make_folder(path)
            if not self.is_local:
                if self.filesystem.get_file_info(self.full(path)).type != fs.FileType.NotFound:
                    return False
                with self.filesystem.open_output_stream(self.full(path)) as file:
                    file.write(data)
                return True
            return self._link(path, data)

    def list(self, folder: str) -> list[Found]:
        """Return all files below a folder, sorted; none if there is no such folder."""
        with self._told("list", folder):
            selector = fs.FileSelector(self.full(folder), recursive=True, allow_not_found=True)
            found = self.filesystem.get_file_info(selector)
        cut = len(self.root) + 1
        return sorted(
            (Found(its.path[cut:], its.size, (its.mtime_ns or 0) // 1_000) for its in found if its.is_file),
            key=lambda its: its.path,
        )

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there stays so."""
        with suppress(FileNotFoundError), self._told("delete", path):
            self.filesystem.delete_file(self.full(path))

    def _link(self, path: str, data: bytes) -> bool:
        full = self.full(path)
        folder, name = os.path.split(full)
        # Names with a dot in front are no part of an archive for anybody who lists it.
        draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}")
        try:
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, full)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        _sync(folder)
        return True

    def _make_folder(self, path: str) -> None:
        # Object stores have no folders; making one would leave an empty object.
        if self.is_local:
            os.makedirs(os.path.dirname(self.full(path)), exist_ok=True)

    @contextmanager
    def _told(self, doing: str, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise LogError(
                f"the archive {self.uri} has no file {path}, which its commits name; restore it, or archive anew"
            ) from None
        except (OSError, pa.ArrowException) as error:
            why = " ".join(str(error).split())
            raise LogError(f"cannot {doing} {path} of the archive {self.uri}: {why}") from error


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
