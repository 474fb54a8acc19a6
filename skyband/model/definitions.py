"""One group with its queries: what a definitions file holds."""

from dataclasses import dataclass

from skyband.model.group import Group
from skyband.model.query import Query

__all__ = ["Definitions"]


@dataclass(frozen=True, slots=True)
class Definitions:
    """A group and the queries over it; every query has been bound to the group and planned, so what loads can run."""

    group: Group
    queries: tuple[Query, ...]
