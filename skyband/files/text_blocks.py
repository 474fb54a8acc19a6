"""Text files in blocks of whole lines, plain or packed with gzip; what goes wrong is said with file and line."""

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from skyband.errors import InputError

__all__ = ["TextBlock", "TextFile", "open_file"]

# Large enough that what is paid per block does not count, small enough that many files can be read side by side.
_BLOCK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines of a file, as bytes and as text; `first_line` counts from 1."""

    first_line: int
    data: bytes
    text: str


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; raise InputError if it is none that can be read."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name the files in it")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None


class TextFile:
    """A text file that is read once, block after block; one whose name ends in .gz is unpacked.

    No more than a block and the longest line is in memory.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = open_file(path)
        self._is_packed = path.suffix.lower() == ".gz"
        self._source = gzip.GzipFile(fileobj=self._file) if self._is_packed else self._file
        self.total_bytes = os.fstat(self._file.fileno()).st_size
        self.read_bytes = 0

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the lines of the file, the last one too if it does not end.

        Raises InputError for what is not UTF-8, for a damaged archive, and for a line of more than 16 MiB.
        """
        line = 1
        rest = b""
        while chunk := self._read():
            data = rest + chunk
            if line == 1:
                data = data.removeprefix(_BOM)
            stop = data.rfind(b"\n") + 1
            if stop:
                yield self._block(line, data[:stop])
                line += data.count(b"\n", 0, stop)
            rest = data[stop:]
            if len(rest) > _LONGEST_LINE_BYTES:
                raise InputError(f"{self.name} line {line}: is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
        if rest:
            yield self._block(line, rest)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        try:
            chunk = self._source.read(_BLOCK_BYTES)
            self.read_bytes = self._file.tell() if self._is_packed else self.read_bytes + len(chunk)
        except EOFError:
            raise InputError(f"{self.name}: ends in the middle of its gzip data; it was cut off") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.name}: is not gzip, or is damaged ({str(error).rstrip('.')})") from None
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {(error.strerror or str(error)).lower()}") from None
        if not chunk and self._is_packed and not self.total_bytes:
            raise InputError(f"{self.name}: is empty, so it is not gzip")
        return chunk

    def _block(self, line: int, data: bytes) -> TextBlock:
        try:
            return TextBlock(line, data, data.decode())
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, error.start)
            raise InputError(
                f"{self.name} line {line}: is not UTF-8: byte 0x{data[error.start]:02x} begins no character; "
                "save it as UTF-8"
            ) from None
