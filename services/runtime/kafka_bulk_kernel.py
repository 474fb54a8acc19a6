"""Kernels that take messages of librdkafka apart, many at once, and give them back."""

import numpy as np
import numpy.typing as npt
from numba import njit

from services.runtime.librdkafka import (
    ADDRESS_AT,
    BYTES_AT,
    ERROR_AT,
    OFFSET_AT,
    PARTITION_AT,
    TOPIC_AT,
    WORDS,
    memcpy,
    message_destroy,
    message_timestamp,
)
from skyband.structures.array_types import Bytes, Flags, Ints

__all__ = ["FIELDS", "copy_messages", "sort_messages"]

# Fields of a message in the order of `heads`; the value has no address if it is none.
_ADDRESS, _BYTES, _OFFSET, _TIME = 0, 1, 2, 3
FIELDS = 4


@njit(cache=True, nogil=True, error_model="numpy")
def sort_messages(
    messages: Ints, words: Ints, halves: npt.NDArray[np.int32], heads: Ints, group_of: Ints, groups: Ints
) -> int:
    """Read n messages: their fields to `heads`, and to `group_of` which group each is of, -1 for an error.

    A group is a topic and partition; `groups` holds of each (topic, partition, messages, bytes), in order of its first
    message. `words` and `halves` are the same scratch of one message. Returns the number of groups. Cost: 20 ns a
    message, most of it waiting for its memory; messages come in long runs of one partition.
    """
    count = 0
    group = -1
    for i in range(len(messages)):
        memcpy(words.ctypes.data, messages[i], 8 * WORDS)
        if halves[ERROR_AT] != 0:
            group_of[i] = -1
            continue
        topic, partition = words[TOPIC_AT], np.int64(halves[PARTITION_AT])
        if group < 0 or groups[group, 0] != topic or groups[group, 1] != partition:
            group = 0
            while group < count and (groups[group, 0] != topic or groups[group, 1] != partition):
                group += 1
            if group == count:
                groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3] = topic, partition, 0, 0
                count += 1
        heads[i, _ADDRESS], heads[i, _BYTES] = words[ADDRESS_AT], words[BYTES_AT]
        heads[i, _OFFSET] = words[OFFSET_AT]
        heads[i, _TIME] = message_timestamp(messages[i], 0)
        group_of[i] = group
        groups[group, 2] += 1
        groups[group, 3] += words[BYTES_AT]
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def copy_messages(
    messages: Ints,
    heads: Ints,
    group_of: Ints,
    rows: Ints,
    at: Ints,
    offset: Ints,
    time_us: Ints,
    data: Bytes,
    ends: Ints,
    is_none: Flags,
) -> None:
    """Write messages to columns, each group's from row ``rows[group]`` and byte ``at[group]`` on, and destroy them.

    Ends count from the beginning of their group's bytes. Messages with an error stay as they are. Changes `rows` and
    `at`. Cost: 60 ns a message, most of it to give its memory back.
    """
    begin = at.copy()
    base = data.ctypes.data
    for i in range(len(messages)):
        group = group_of[i]
        if group < 0:
            continue
        row, size = rows[group], heads[i, _BYTES]
        if size > 0:
            memcpy(base + at[group], heads[i, _ADDRESS], size)
        at[group] += size
        offset[row] = heads[i, _OFFSET]
        time_us[row] = 1_000 * heads[i, _TIME]
        ends[row] = at[group] - begin[group]
        is_none[row] = heads[i, _ADDRESS] == 0
        rows[group] = row + 1
        message_destroy(messages[i])
