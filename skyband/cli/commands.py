"""How commands behave, whatever they do: errors become sentences, and options take what a shell expands."""

import errno
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from skyband.cli.failures import FAILED, INTERRUPTED, exit_code, leave_pipe, sentence
from skyband.errors import SkybandError

__all__ = ["ApplyCommand", "Commands", "ReplayCommand", "examples", "family", "spread"]


class Commands(TyperGroup):
    """Commands that end with a sentence on stderr and an exit code, never with a traceback of what can be expected."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help."""
        option = super().get_help_option(ctx)
        if option is not None:
            # Not None, for which typer loads pydantic: half the time that `skyband COMMAND --help` takes.
            option.default = False
        return option

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except SkybandError as error:
            print(sentence(error), file=sys.stderr)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                leave_pipe()
            else:
                print(sentence(error), file=sys.stderr)
            raise typer.Exit(FAILED) from None


class ReplayCommand(TyperCommand):
    """A command whose ``--input`` takes several files, as in ``--input data/*.csv``, in the order they are given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, spread(args, "--input"))


class ApplyCommand(TyperCommand):
    """A command whose ``-f`` takes several files, as in ``-f definitions/*.yaml``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, spread(args, "-f"))


def examples(*commands: str) -> str:
    """Return commands to type, as they stand below the help of a command."""
    return "\b\nexamples:\n" + "\n".join(f"  {command}" for command in commands)


def family(help_text: str) -> typer.Typer:
    """Return an empty family of commands."""
    return typer.Typer(cls=Commands, help=help_text, no_args_is_help=True, rich_markup_mode=None)


def spread(arguments: Sequence[str], option: str) -> list[str]:
    """Return `arguments` with `option` repeated before each further value that follows it.

    >>> spread(["--input", "a", "b", "--output", "c"], "--input")
    ['--input', 'a', '--input', 'b', '--output', 'c']
    """
    made: list[str] = []
    taking = False
    for argument in arguments:
        is_value = not argument.startswith("-")
        if taking and is_value and made[-1] != option:
            made.append(option)
        made.append(argument)
        taking = argument == option or argument.startswith(f"{option}=") or (taking and is_value)
    return made
