"""Measure small requests: batches of one record, six partitions per request, next to kfake and Apache Kafka.

One pipelined connection: the client sends prepared requests and only counts the bytes of the responses, so that the
broker is the limit. The second part measures processor time per request while the client waits for each response, as a
client with linger.ms=0 does.
"""

from __future__ import annotations

import socket
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import count

from benchmarks.brokers import Running, everybody
from benchmarks.duel import Figures, Line, duel, report
from benchmarks.race import cpu_seconds
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.broker.wire import Wire, batch

PARTITIONS = 6
SIZE = 100
VERSION = 11
REQUESTS = 40_000
WINDOW = 64
"""The number of requests written at once. The same number is in flight meanwhile."""
ALONE = 5_000
"""The number of requests that are sent one at a time."""
WARM = 5
"""The number of warm-up turns, in which a JVM reaches its full speed."""
SECONDS = 60.0
AIMS = ("≥ 1", "≤ 1", "≤ 1", "≤ 1.1", "≤ 1.1")
serial = count()


def request(topic: str) -> bytes:
    """Return a frame with a batch of one record for each partition."""
    data = [PartitionProduceData(number, batch([bytes(SIZE)])) for number in range(PARTITIONS)]
    asked = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=data)])
    parts = encode_request(asked, VERSION, 1, "bench")
    frame = b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]
    return len(frame).to_bytes(4, "big") + frame


def small(server: Running) -> Figures:
    """Run one turn: many requests at once, then one after the other."""
    topic = f"small-{next(serial)}"
    with Wire(server.bootstrap) as wire:
        wire.socket.settimeout(SECONDS)
        wire.create(topic, PARTITIONS)
        frame = request(topic)
        answer_bytes = settle(wire, frame)
        before, clock = cpu_seconds(server.process), time.perf_counter()
        pipeline(wire.socket, frame * WINDOW, answer_bytes * WINDOW, REQUESTS // WINDOW)
        span, used = time.perf_counter() - clock, cpu_seconds(server.process) - before
        before = cpu_seconds(server.process)
        spans = [measure_alone(wire, frame) for _ in range(ALONE)]
        one = cpu_seconds(server.process) - before
    quantiles = statistics.quantiles(spans, n=100)
    return {
        "one-record batches/s": REQUESTS * PARTITIONS / span,
        "CPU µs for a request of 6": used / REQUESTS * 1e6,
        "the same, each waited for": one / ALONE * 1e6,
        "answer, p50 µs": quantiles[49] * 1e6,
        "answer, p99 µs": quantiles[98] * 1e6,
    }


def settle(wire: Wire, frame: bytes) -> int:
    """Return the size of a successful response. Only its offsets vary. All partitions have leaders afterwards."""
    deadline = time.perf_counter() + SECONDS
    while True:
        wire.socket.sendall(frame)
        answer = wire.receive_frame()
        if not is_error(answer):
            return len(answer) + 4
        assert time.perf_counter() < deadline, "the partitions take no records"


def is_error(answer: memoryview) -> bool:
    """True if any partition has an error code."""
    _, response = decode_response(ProduceResponse, VERSION, answer)
    return any(each.error_code for topic in response.responses for each in topic.partition_responses)


def pipeline(sock: socket.socket, requests: bytes, answer_bytes: int, turns: int) -> None:
    """Write `requests` repeatedly. Those of two turns are in flight at a time."""
    buffer = memoryview(bytearray(1 << 18))
    sock.sendall(requests)
    left = answer_bytes
    for turn in range(1, turns + 1):
        if turn < turns:
            sock.sendall(requests)
        while left > 0:
            got = sock.recv_into(buffer)
            assert got, "the broker hung up"
            left -= got
        left += answer_bytes


def measure_alone(wire: Wire, frame: bytes) -> float:
    """Return the seconds until the response to one request."""
    clock = time.perf_counter()
    wire.socket.sendall(frame)
    wire.receive_frame()
    return time.perf_counter() - clock


def lines(servers: Sequence[Running], rounds: int) -> list[tuple[Line, str]]:
    """Measure all figures."""
    for server in servers:
        for _ in range(WARM):
            small(server)
    return list(zip(duel(servers, small, rounds=rounds), AIMS, strict=True))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with everybody() as servers:
        report("small requests: six batches of one record", servers, lines(servers, rounds))


if __name__ == "__main__":
    main()
