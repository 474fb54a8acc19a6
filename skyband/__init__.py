"""Standing top-k questions over streams that never line up.

>>> import skyband
>>> results = skyband.replay("factory.yaml", "factory.jsonl")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skyband.client import Client
    from skyband.errors import SkybandError
    from skyband.files.definitions import load_definitions
    from skyband.local.replay import replay
    from skyband.model.definitions import Definitions
    from skyband.model.result import Candidate, Result, ResultRow

__version__ = "0.1.0"
__all__ = ["Candidate", "Client", "Definitions", "Result", "ResultRow", "SkybandError", "load_definitions", "replay"]

# Nothing is imported before it is asked for: `skyband --help` must not wait for numpy and numba.
_HOMES = {
    "Client": "skyband.client",
    "Definitions": "skyband.model.definitions",
    "Candidate": "skyband.model.result",
    "Result": "skyband.model.result",
    "ResultRow": "skyband.model.result",
    "SkybandError": "skyband.errors",
    "load_definitions": "skyband.files.definitions",
    "replay": "skyband.local.replay",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'skyband' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
