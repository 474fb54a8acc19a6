"""``skyband completion``: the script that lets a shell complete commands and options."""

from typing import Annotated

import typer

from skyband.cli.commands import examples
from skyband.cli.figures import joined
from skyband.errors import DefinitionError

__all__ = ["COMPLETE", "EXAMPLES", "HELP", "SHELLS", "SHORT", "completion"]

SHELLS = ("bash", "zsh", "fish")
# With this in its environment the command answers a shell instead of running.
COMPLETE = "_SKYBAND_COMPLETE"

HELP = """Print the script with which a shell completes commands and options of skyband.

Load it in each new shell, from your shell's start file."""
SHORT = "Print the script for completion in a shell."
EXAMPLES = examples(
    'eval "$(skyband completion bash)"',
    'eval "$(skyband completion zsh)"',
    "skyband completion fish > ~/.config/fish/completions/skyband.fish",
)


def completion(shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="The shell.")]) -> None:
    """Run the command."""
    if shell not in SHELLS:
        raise DefinitionError(f"there is no script for this shell; use {joined(list(SHELLS))}", place=shell)
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="skyband", complete_var=COMPLETE, shell=shell))
