"""librdkafka as a C program uses it: no Python between the library and its records.

The library is the one in the package of confluent-kafka. The loops around it are compiled at their first use.
"""

from __future__ import annotations

import ctypes
import subprocess
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any

import confluent_kafka

from benchmarks.brokers import Running
from benchmarks.confluent import CONSUMER, PRODUCER

SOURCE = Path(__file__).with_name("librdkafka_loops.c")
ROOM = 512
"""The size in bytes of the buffer for an error's text."""


def fill(
    server: Running, topic: str, size: int, records: int, producer: Mapping[str, Any] = MappingProxyType(PRODUCER)
) -> int:
    """Send `records` values of `size` bytes, and wait until all are acknowledged."""
    error = ctypes.create_string_buffer(ROOM)
    settings = arguments(server, producer)
    done = loops().fill(*settings, topic.encode(), size, records, error, ROOM)
    assert done == records, f"{done} of {records} records were acknowledged; {error.value.decode()}"
    return records


def consume(server: Running, topic: str, records: int) -> int:
    """Read `records` records from the start of `topic`, and access each value."""
    error = ctypes.create_string_buffer(ROOM)
    settings = arguments(server, CONSUMER)
    seen = loops().drain(*settings, topic.encode(), records, error, ROOM)
    assert seen > 0, f"not all of {records} records came; {error.value.decode()}"
    return records


def arguments(server: Running, settings: Mapping[str, Any]) -> tuple[Any, Any, int]:
    """Return the settings as two C arrays of strings and their length."""
    full = {"bootstrap.servers": server.bootstrap, **dict(server.settings), **settings}
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in full.values()]
    array = ctypes.c_char_p * len(full)
    return array(*(name.encode() for name in full)), array(*(text.encode() for text in texts)), len(full)


@cache
def loops() -> Any:
    """Return the compiled loops."""
    # The import of confluent_kafka has loaded its librdkafka already. The loops are linked to the same file.
    assert confluent_kafka.libversion()
    site = Path(confluent_kafka.__file__).parent.parent
    (library,) = (site / "confluent_kafka.libs").glob("librdkafka-*.so*")
    target = Path(mkdtemp(prefix="ottla-bench-"), "loops.so")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    where = ("-L", str(library.parent), f"-l:{library.name}", f"-Wl,-rpath,{library.parent}")
    # librdkafka finds the other libraries of the wheel by itself when it is loaded.
    lenient = ("-Wl,--unresolved-symbols=ignore-in-shared-libs",)
    command = [compiler, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(target), *where, *lenient]
    subprocess.run(command, check=True)
    found = ctypes.CDLL(str(target))
    found.fill.restype = found.drain.restype = ctypes.c_int64
    pointer, number, text = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
    found.fill.argtypes = [pointer, pointer, ctypes.c_int, text, number, number, text, number]
    found.drain.argtypes = [pointer, pointer, ctypes.c_int, text, number, text, number]
    return found
