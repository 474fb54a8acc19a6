"""How probable it is that an object of chosen streams comes on another: ``temperature,vibration→noise``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyband.errors import DefinitionError
from skyband.model.group import Group
from skyband.model.statistics import Appearance
from skyband.sketch.group_sketch import GroupSketch
from skyband.structures.coordinated_sample import appearance_among

__all__ = ["Subset", "read_subset", "subset_appearances"]


@dataclass(frozen=True, slots=True)
class Subset:
    """Streams by their place in the group: those that an object was seen on, and the one where it may come."""

    given: tuple[int, ...]
    stream: int

    def label(self, streams: Sequence[str]) -> str:
        """Return it as it is typed."""
        return f"{','.join(streams[place] for place in self.given)}→{streams[self.stream]}"


def read_subset(text: str, group: Group) -> Subset:
    """Return what ``a,b→c`` or ``a,b->c`` asks for. Raises DefinitionError for what is no such thing."""
    try:
        parts = re.split("→|->", text)
        if len(parts) != 2:
            raise DefinitionError("is no subset; write for example temperature,vibration→noise")
        given = tuple(dict.fromkeys(group.stream_index(name.strip()) for name in parts[0].split(",")))
        stream = group.stream_index(parts[1].strip())
        if stream in given:
            raise DefinitionError("asks for a stream that is given; name another behind the arrow")
    except DefinitionError as error:
        error.place = f"--subset {text}"
        raise
    return Subset(given, stream)


def subset_appearances(
    sketch: GroupSketch, subsets: Iterable[Subset], at_us: int
) -> tuple[tuple[Subset, Appearance | None], ...]:
    """Return for each subset the chance in the window that ends at `at_us`; None: fewer than 30 objects tell.

    Cost: a pass over the sample each.
    """
    window_us = sketch.shape.window_us
    objects = sketch.sample.objects(at_us, window_us)
    return tuple(
        (its, appearance_among(objects, sum(1 << place for place in its.given), its.stream, at_us, window_us))
        for its in subsets
    )
