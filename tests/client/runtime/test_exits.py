"""Processes that exit without closing their clients, normally or by a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, TopicPartition
from tests.client.conftest import NewTopicName, eventually

COUNT = 1_000
TERMINATED = 143
PATIENCE = 60

WAIT = "while True: signal.sigtimedwait([], 0.05)"
"""Wait for a signal; signal.pause() misses one that arrives just before it."""
PLAIN = """
import signal, sys
from ottla import Producer
servers, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
for i in range(1000):
    producer.send(topic, b"%d" % i)
print("ready", flush=True)
while True: signal.sigtimedwait([], 0.05)
"""
IN_ASYNCIO = """
import asyncio, sys
from ottla.aio import Producer
servers, topic = sys.argv[1:]
async def main():
    global producer
    producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
    for i in range(1000):
        await producer.send(topic, b"%d" % i)
    print("ready", flush=True)
    await asyncio.sleep({seconds})
asyncio.run(main())
"""
IN_THE_MIDDLE = """
import os, signal
from ottla.network.selector import Selector
connect, connected = Selector.connect, []
def interrupted(self, channel, *arguments, **settings):
    connected.append(channel)
    if len(connected) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    connect(self, channel, *arguments, **settings)
Selector.connect = interrupted
"""
STAY = "threading.Thread(target=threading.Event().wait).start()"
STUBBORN = """
import signal, sys, threading
import ottla.client.runtime.exits as exits
from ottla import Producer
exits.PATIENCE_SECONDS = 0.1
servers, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
for i in range(1000):
    producer.send(topic, b"%d" % i)
{stay}
try:
    print("ready", flush=True)
    {wait}
except SystemExit:
    {then}
"""
AT_THE_END = """
import os, signal, sys, threading
import ottla.client.runtime.exits as exits
from ottla import Producer
servers, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
for i in range(1000):
    producer.send(topic, b"%d" % i)
def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
{moment}
print("ready", flush=True)
"""
IN_A_FORKED_WORKER = """
import multiprocessing, signal, sys
from ottla import Producer
servers, topic = sys.argv[1:]
def work():
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    global own
    own = Producer(bootstrap_servers=servers, linger_ms=60_000)
    for i in range(1000):
        own.send(topic, b"%d" % i)
with Producer(bootstrap_servers=servers) as producer:
    assert producer.partitions_for(topic)
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
assert worker.exitcode == 0, worker.exitcode
"""
MEMBER = """
import signal, sys
from ottla import Consumer
servers, topic = sys.argv[1:]
def work():
    consumer = Consumer(
        bootstrap_servers=servers, group_id=topic, group_protocol="{protocol}", auto_offset_reset="earliest"
    )
    consumer.subscribe([topic])
    while not consumer.poll(0.1):
        pass
    return consumer
{use}
print("ready", flush=True)
{end}
"""


@contextmanager
def running(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed that it is ready."""
    path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> int:
    """The exit status."""
    return process.wait(PATIENCE)


def asleep(process: subprocess.Popen[str]) -> bool:
    """True if its main thread waits: Python handles an earlier signal only at the next one."""
    state = Path(f"/proc/{process.pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "S"


def end_of(servers: str, topic: str) -> int:
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=servers) as consumer:
        return consumer.end_offsets([place])[place]


@pytest.mark.parametrize("script", [PLAIN, IN_ASYNCIO.format(seconds=600)], ids=["plain", "asyncio"])
def test_sent_records_are_delivered_before_a_process_ends_by_sigterm(servers: str, topic: str, script: str) -> None:
    with running(script, servers, topic) as process:
        process.terminate()
        assert ended(process) == TERMINATED
    assert end_of(servers, topic) == COUNT


def test_a_sigterm_waits_until_a_producer_of_an_event_loop_has_finished_what_it_does(servers: str, topic: str) -> None:
    with running(IN_THE_MIDDLE + IN_ASYNCIO.format(seconds=600), servers, topic) as process:
        assert ended(process) == TERMINATED
    assert end_of(servers, topic) == COUNT


def test_records_left_unsent_by_an_event_loop_are_sent_at_process_exit(servers: str, topic: str) -> None:
    with running(IN_ASYNCIO.format(seconds=0), servers, topic) as process:
        assert ended(process) == 0
    assert end_of(servers, topic) == COUNT


@pytest.mark.parametrize(
    ("stay", "wait", "then"),
    [
        (STAY, "", "raise"),
        (STAY, WAIT, "raise"),
        ("", WAIT, WAIT),
    ],
    ids=["the main thread has ended", "the main thread ends by it", "the main thread goes on"],
)
def test_undeliverable_records_do_not_keep_the_process_alive(
    servers: str, topic: str, stay: str, wait: str, then: str
) -> None:
    with running(STUBBORN.format(stay=stay, wait=wait, then=then), servers, topic) as process:
        eventually(lambda: asleep(process))
        process.terminate()
        assert ended(process) == -signal.SIGTERM
    assert end_of(servers, topic) == COUNT


@pytest.mark.parametrize(
    "moment",
    ["threading._register_atexit(terminate)", "exits.EXITS.add(terminate)"],
    ids=["as the program's threads are waited for", "while clients are closed"],
)
def test_a_sigterm_at_the_end_of_a_program_leaves_no_record_unsent(servers: str, topic: str, moment: str) -> None:
    with running(AT_THE_END.format(moment=moment), servers, topic) as process:
        assert ended(process) == -signal.SIGTERM
    assert end_of(servers, topic) == COUNT


def test_a_forked_worker_of_multiprocessing_delivers_too(servers: str, topic: str) -> None:
    path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "-c", IN_A_FORKED_WORKER, servers, topic]
    subprocess.run(command, env=path, check=True, timeout=PATIENCE)
    assert end_of(servers, topic) == COUNT


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", "", 7),
        ("", "signal.signal(signal.SIGTERM, signal.SIG_DFL)", -signal.SIGTERM),
        ("", "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", 7),
    ],
    ids=["a handler before", "the default after", "a handler after"],
)
def test_signal_handlers_of_the_program_take_precedence(
    servers: str, topic: str, before: str, after: str, status: int
) -> None:
    lines = PLAIN.replace("servers, topic", f"{before}\nservers, topic").replace("for i", f"{after}\nfor i")
    # One thread is dropped before it is ready: an interrupt during its end would be lost.
    more = 'Producer(bootstrap_servers=servers)\nprint("ready"'
    with running(lines.replace('print("ready"', more), servers, topic) as process:
        process.terminate()
        assert ended(process) == status


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    ("use", "end", "status"),
    [
        ("consumer = work()", "", 0),
        ("work()", "", 0),
        ("work()", WAIT, TERMINATED),
        ("consumer = work()", WAIT, TERMINATED),
    ],
    ids=["kept", "dropped", "dropped, SIGTERM", "kept, SIGTERM"],
)
def test_a_process_that_exits_without_close_leaves_its_group_and_commits_nothing(
    servers: str, new_topic: NewTopicName, admin: Admin, protocol: str, use: str, end: str, status: int
) -> None:
    topic = new_topic()
    with running(PLAIN, servers, topic) as process:
        process.terminate()
        assert ended(process) == TERMINATED
    with running(MEMBER.format(protocol=protocol, use=use, end=end), servers, topic) as member:
        if end:
            member.terminate()
        assert ended(member) == status
    assert not described(admin, topic).members
    assert not admin.list_consumer_group_offsets(topic)


def test_a_garbage_collected_consumer_leaves_at_once(servers: str, topic: str, admin: Admin) -> None:
    consumer: Any = Consumer(bootstrap_servers=servers, group_id=topic)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    assert described(admin, topic).members
    del consumer
    eventually(lambda: not described(admin, topic).members)


def described(admin: Admin, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group]
