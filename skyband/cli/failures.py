"""From an error to what a person sees and a script tests: one sentence, the place it is about, an exit code.

==== ===========================================
code meaning
==== ===========================================
0    it worked
1    it failed: input, output, log
2    it was asked wrongly: definitions, options
130  it was interrupted
==== ===========================================
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Sequence

from skyband.errors import DefinitionError, NotFoundError, SkybandError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "WRONGLY_ASKED",
    "exit_code",
    "leave_pipe",
    "run_as_command",
    "sentence",
    "wrong_option",
]

FAILED = 1
WRONGLY_ASKED = 2
INTERRUPTED = 130

_INDENT = 4


def exit_code(error: BaseException) -> int:
    """Return the exit code for `error`."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return WRONGLY_ASKED if isinstance(error, DefinitionError | NotFoundError) else FAILED


def sentence(error: SkybandError | OSError, columns: int | None = None) -> str:
    """Return the message of `error` and, below it, the text it is about with a mark; `columns` wide at most."""
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        return f"{error.filename}: {reason}" if error.filename else f"cannot go on: {reason}"
    pointer = error.pointer() if isinstance(error, DefinitionError) else None
    if pointer is None:
        return str(error)
    width = (columns or shutil.get_terminal_size().columns) - _INDENT
    return "\n".join([str(error), *(" " * _INDENT + line for line in _fitted(pointer, width))])


def wrong_option(error: DefinitionError, option: str) -> DefinitionError:
    """Return `error` saying that `option` caused it, as it was typed: ``--shards 0``."""
    error.place = option
    error.source_text = None
    return error


def run_as_command(main: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> int:
    """Run what a process of its own does for a person, and return its exit code; its errors become sentences."""
    try:
        main(arguments)
    except SkybandError as error:
        sys.stderr.write(f"{sentence(error)}\n")
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno == errno.EPIPE:
            leave_pipe()
        else:
            sys.stderr.write(f"{sentence(error)}\n")
        return FAILED
    return 0


def leave_pipe() -> None:
    """Turn stdout to nowhere after its reader has gone, so that Python's own flush at the end says nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fitted(pointer: str, width: int) -> list[str]:
    """Return both lines without the common indentation, cut around the mark if they are wider than `width`."""
    text, marks = pointer.split("\n")
    column = len(marks) - len(marks.lstrip())
    indent = min(len(text) - len(text.lstrip()), column)
    text, marks, column = text[indent:], marks[indent:], column - indent
    if len(text) <= width or width < 20:
        return [text, marks]
    start = max(0, min(column - width // 3, len(text) - width))
    shown, below = text[start : start + width], marks[start : start + width]
    if start:
        shown = "…" + shown[1:]
    if start + width < len(text):
        shown = shown[:-1] + "…"
    return [shown, below]
