"""Close the sockets that kafka-python leaves open.

If a client of kafka-python 3.0.12 is closed while it opens a connection, it drops the connected socket without closing it:
the coroutine `KafkaNetSocket.sock_connect` is cancelled, and it has no `finally`. Python then warns of an unclosed socket,
in the test in which the garbage collector finds it.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def kafka_python_sockets_closed() -> Iterator[None]:
    """Close all sockets at the end that kafka-python opens within. No effect if it is not imported."""
    inet: Any = sys.modules.get("kafka.net.inet")
    if inet is None:
        yield
        return
    opened: list[socket.socket] = []
    open_socket = inet.KafkaNetSocket.socket

    def open_and_record(*arguments: Any) -> socket.socket:
        opened.append(open_socket(*arguments))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inet.KafkaNetSocket, "socket", open_and_record)
        yield
    for each in opened:
        each.close()
