"""Many clients that log in at once, in a separate process. Prints the seconds until all of them are logged in.

`python -m benchmarks._logins ADDRESS AUTHORITY COUNT`. All are connected when it prints that it is ready, and they
start when it receives a line.
"""

from __future__ import annotations

import hashlib
import ssl
import sys
import threading
import time
from functools import cache
from typing import Any

from benchmarks.secured import MECHANISM, PASSWORD, USER
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.scram import ScramConversation
from tests.broker.wire import Wire

SECONDS = 60.0


def log_in(wire: Wire, context: ssl.SSLContext, nonce: str) -> None:
    """Log in with TLS and SCRAM."""
    wire.socket.settimeout(SECONDS)
    wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
    wire.ask(SaslHandshakeRequest(MECHANISM), 1)
    talk = ScramConversation(MECHANISM, USER, PASSWORD, nonce)
    message = talk.next(b"")
    while message is not None:
        answer = wire.ask(SaslAuthenticateRequest(message), 2)
        assert not answer.error_code, answer.error_message
        message = talk.next(bytes(answer.auth_bytes))


def all_in(address: str, authority: str, count: int) -> float:
    """Return the seconds until the last client is logged in."""
    hashlib.pbkdf2_hmac = cache(hashlib.pbkdf2_hmac)  # type: ignore[assignment]  # the clients' work is not what is measured
    context = ssl.create_default_context(cafile=authority)
    wires = [Wire(address) for _ in range(count)]
    start = threading.Barrier(count + 1)
    failed: list[Any] = []

    def one(number: int) -> None:
        start.wait()
        try:
            log_in(wires[number], context, f"nonce{number}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    start.wait()
    clock = time.perf_counter()
    for thread in threads:
        thread.join()
    span = time.perf_counter() - clock
    assert not failed, failed[0]
    for wire in wires:
        wire.socket.close()
    return span


if __name__ == "__main__":
    print(all_in(sys.argv[1], sys.argv[2], int(sys.argv[3])))
