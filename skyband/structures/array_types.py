"""Names for the arrays that kernels take; a scalar read from one counts as int or float, numba gives it its width."""

from typing import Any, TypeAlias

__all__ = ["Bytes", "Flags", "Floats", "Indexes", "Ints"]

# numpy's scalar types are no int and no float to a type checker, while in a compiled kernel there is no difference; the
# element type is therefore told by the name alone.
Ints: TypeAlias = Any
"""int64."""
Indexes: TypeAlias = Any
"""int32: slots, places, nodes."""
Floats: TypeAlias = Any
"""float64."""
Flags: TypeAlias = Any
"""uint8 or int8."""
Bytes: TypeAlias = Any
"""uint8: an arena of ids."""
