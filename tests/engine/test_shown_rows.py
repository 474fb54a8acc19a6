"""Shown rows carry what their ranking's columns and the object table say, whatever the length of their ids."""

import numpy as np
import pytest

from skyband.engine.shown_rows import gather
from tests.structures.test_object_table import Model


@pytest.mark.parametrize("length", [0, 5, 40, 1_000])
@pytest.mark.parametrize("descending", [True, False])
def test_rows_show_their_ids_scores_and_columns(length: int, descending: bool) -> None:
    model = Model(hashes=1 << 40)
    slots = [model.add(b"%d" % i + b"x" * length) for i in range(6)]
    slot, rank = np.array(slots[::-1], np.int32), np.array([3.0, 0.0, -2.0, 5.0, 1.0, 0.5])
    bits, values = np.array([1, 2, 3, 0, 1, 2]), np.arange(12, dtype=np.float64).reshape(6, 2)
    used = np.array([4, 1, 0], np.int32)
    shown = gather(model.table, used, slot, rank, bits, values, descending=descending)
    assert shown.slots.tolist() == slot[used].tolist()
    assert shown.score.tolist() == ([1.0, 0.0, 3.0] if descending else [-1.0, 0.0, -3.0])
    assert not np.signbit(shown.score[1])
    assert shown.attributes.tolist() == values[used].tolist()
    assert shown.present.tolist() == [[True, False], [False, True], [True, False]]
    ids = b"".join(model.live[i][0] for i in shown.slots.tolist())
    assert (shown.id_bytes.tobytes(), int(shown.id_ends[-1])) == (ids, len(ids))
