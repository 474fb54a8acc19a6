"""What deciding takes and gives, and the checks that every update shares."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyband.control.catalog import Catalog
from skyband.control.catalog_events import CatalogEvent
from skyband.errors import ConflictError, DefinitionError
from skyband.model.resources import Resource, Stamp

__all__ = ["Case", "Decision", "check_etag", "masked"]


@dataclass(frozen=True, slots=True)
class Case:
    """What deciding needs besides the command: the catalog, the time, and a uid for what is created."""

    catalog: Catalog
    now_us: int
    new_uid: str

    @property
    def stamp(self) -> Stamp:
        """Stamp of a resource created now."""
        return Stamp(self.new_uid, 1, self.now_us, self.now_us)


@dataclass(frozen=True, slots=True)
class Decision:
    """`events` to apply, in order, and the `resource` as it will be (None: it is gone)."""

    resource: Resource | None
    events: tuple[CatalogEvent, ...] = ()


def check_etag(resource: Resource, etag: str) -> None:
    """Raise ConflictError unless `etag` is empty or that of `resource`."""
    if etag and etag != resource.stamp.etag:
        raise ConflictError(f"{resource.name} has changed since it was read; read it again, then repeat the change")


def masked(mask: Iterable[str], fields: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the fields that an update names, all of them for an empty mask; ``window.size`` names window.

    Raises DefinitionError for a field that a `what` does not have.
    """
    named = []
    for path in mask:
        name = path.split(".", 1)[0]
        if name not in fields:
            near = difflib.get_close_matches(name, fields, 1)
            hint = f"did you mean {near[0]}?" if near else f"fields are {', '.join(fields)}"
            raise DefinitionError(
                f"update_mask names {path!r}, which a {what} does not have; {hint}", field="update_mask"
            )
        named.append(name)
    return tuple(named) or tuple(fields)
