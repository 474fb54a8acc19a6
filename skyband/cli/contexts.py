"""Contexts: which servers the commands talk to, by name, in a file of the user."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from skyband.errors import DefinitionError, InputError, NotFoundError

__all__ = ["Context", "Contexts", "chosen_context"]

DEFAULT_CONTROL = "localhost:50051"
DEFAULT_KAFKA = "localhost:9092"


@dataclass(frozen=True, slots=True)
class Context:
    """Addresses of one deployment. `results` empty: results are served where control is."""

    name: str = "default"
    control: str = DEFAULT_CONTROL
    results: str = ""
    kafka: str = DEFAULT_KAFKA
    tls: bool = False


class Contexts:
    """The user's contexts, as a file holds them; initially none.

    The file is ``skyband/contexts.json`` in $XDG_CONFIG_HOME (default ``~/.config``); it is replaced as a whole.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read the file. Raises InputError if it cannot be read as contexts."""
        config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        self._path = path or Path(config).expanduser() / "skyband" / "contexts.json"
        self.current = ""
        self.known: dict[str, Context] = {}
        if not self._path.exists():
            return
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            self.known = {name: Context(name=name, **fields) for name, fields in document["contexts"].items()}
            self.current = document["current"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self._path}: holds no contexts ({error}); mend it, or delete it") from None

    def find(self, name: str) -> Context:
        """Return a context by name. Raises NotFoundError if there is none."""
        if name not in self.known:
            known = ", ".join(sorted(self.known)) or "none"
            raise NotFoundError(f"there is no context {name!r}; there are: {known}")
        return self.known[name]

    def put(self, context: Context) -> None:
        """Add or replace a context; the first one becomes the current one."""
        self.known[context.name] = context
        self.current = self.current or context.name
        self._save()

    def use(self, name: str) -> None:
        """Make a context the current one. Raises NotFoundError if there is none of that name."""
        self.current = self.find(name).name
        self._save()

    def remove(self, name: str) -> None:
        """Forget a context. Raises NotFoundError if there is none of that name."""
        del self.known[self.find(name).name]
        if self.current == name:
            self.current = next(iter(sorted(self.known)), "")
        self._save()

    def _save(self) -> None:
        contexts = {}
        for name, context in sorted(self.known.items()):
            contexts[name] = {key: value for key, value in asdict(context).items() if key != "name"}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"current": self.current, "contexts": contexts}, indent=1) + "\n", encoding="utf-8")
        draft.replace(self._path)


def chosen_context(name: str | None = None, server: str | None = None) -> Context:
    """Return the context of a command: by name, else the user's current one, else the default addresses.

    `server`, or $SKYBAND_SERVER, replaces the address of control. Raises DefinitionError for an address without port.
    """
    contexts = Contexts()
    wanted = name or os.environ.get("SKYBAND_CONTEXT") or contexts.current
    context = contexts.find(wanted) if wanted else Context()
    address = server or os.environ.get("SKYBAND_SERVER") or ""
    if not address:
        return context
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise DefinitionError(f"server {address!r} must be host:port, such as {DEFAULT_CONTROL}", field="server")
    return replace(context, control=address, results="")
