"""The C library behind Kafka's client, called past it where an object per record would be too dear.

``confluent_kafka`` makes a Python object of each message, which costs more than all that align does with its record.
Here the library's own functions, all of its public interface, are called on the same consumer. What is not public is
only where a client object keeps the handle of the library, which `handle_of` knows.
Why, and what it rests on: docs/decisions/0016-messages-without-objects.md.
"""

import ctypes
import sysconfig
from typing import Any

import llvmlite.binding
import numba
from confluent_kafka import Consumer, Producer, cimpl
from numba import types

from skyband.errors import LogError

__all__ = [
    "ADDRESS_AT",
    "BYTES_AT",
    "ERROR_AT",
    "OFFSET_AT",
    "PARTITION_AT",
    "RD",
    "TOPIC_AT",
    "WORDS",
    "handle_of",
    "memcpy",
    "message_destroy",
    "message_timestamp",
]

# A message, as the library documents it, in words of 8 bytes: error (4 bytes), topic, partition (4 bytes), address and
# length of the value, those of the key, offset, and one word of the library's own.
WORDS = 9
TOPIC_AT, ADDRESS_AT, BYTES_AT, OFFSET_AT = 1, 3, 4, 7
# In halves of words.
ERROR_AT, PARTITION_AT = 0, 4

# The handle is the first field of the object behind what every Python object begins with.
_HANDLE_AT = 2 * ctypes.sizeof(ctypes.c_void_p)

RD = ctypes.CDLL(cimpl.__file__)

_POINTER, _INT, _SIZE, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_queue_new": (_POINTER, [_POINTER]),
    "rd_kafka_queue_destroy": (None, [_POINTER]),
    "rd_kafka_queue_get_partition": (_POINTER, [_POINTER, _TEXT, ctypes.c_int32]),
    "rd_kafka_queue_forward": (None, [_POINTER, _POINTER]),
    "rd_kafka_consume_queue": (_POINTER, [_POINTER, _INT]),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, [_POINTER, _INT, _POINTER, _SIZE]),
    "rd_kafka_topic_name": (_TEXT, [_POINTER]),
    "rd_kafka_message_errstr": (_TEXT, [_POINTER]),
    "rd_kafka_message_timestamp": (ctypes.c_int64, [_POINTER, _POINTER]),
    "rd_kafka_message_destroy": (None, [_POINTER]),
}
for _name, (_result, _arguments) in _FUNCTIONS.items():
    _function = getattr(RD, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _for_kernels(name: str, function: Any, result: Any, *arguments: Any) -> Any:
    """Return a C function as kernels call it; interpreted ones call it as Python does."""
    if numba.config.DISABLE_JIT:
        return lambda *given: function(*map(int, given))
    llvmlite.binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    return types.ExternalFunction(name, result(*arguments))


_memcpy = ctypes.CDLL(None).memcpy
_memcpy.restype, _memcpy.argtypes = _POINTER, [_POINTER, _POINTER, _SIZE]

# Addresses are int64 in kernels.
memcpy = _for_kernels("memcpy", _memcpy, types.intp, types.intp, types.intp, types.intp)
message_timestamp = _for_kernels(
    "rd_kafka_message_timestamp", RD.rd_kafka_message_timestamp, types.int64, types.intp, types.intp
)
message_destroy = _for_kernels("rd_kafka_message_destroy", RD.rd_kafka_message_destroy, types.void, types.intp)


def handle_of(client: Consumer | Producer) -> int:
    """Return the address of the library's handle of a client, good until it is closed."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise LogError("this Python has no global lock, and its objects another shape; run Skyband on the usual one")
    handle = ctypes.c_void_p.from_address(id(client) + _HANDLE_AT).value
    if not handle:
        raise LogError("Kafka's client keeps its handle elsewhere; install the pinned release of confluent-kafka")
    return handle
