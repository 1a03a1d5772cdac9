"""Repeated work leaves neither objects in the broker's memory nor open files."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer
from ottla.broker.embedding.embedded_broker import Broker

pytestmark = pytest.mark.heavy

ROUNDS = 20
BLOCKS_A_ROUND = 100
"""The number of objects that may remain: fewer than one round has requests."""
REMEMBERED = {"UUID", "Timer", "Mark"}
"""Ids are kept by the reader of requests, alarms that were cancelled until there are a hundred, and where a number stood at the ends of
the last two windows by each metric of a client: on a slow machine one ends meanwhile."""
MARKS = 3
"""That a metric keeps at most: of where it stood at first, or at the end of a window."""


class Work:
    """The operations of all kinds of clients, with a broker in this process."""

    def __init__(self, servers: str, undo: ExitStack) -> None:
        self.servers = servers
        self.admin = undo.enter_context(Admin(bootstrap_servers=servers))
        self.producer = undo.enter_context(Producer(bootstrap_servers=servers))
        self.transactional = undo.enter_context(Producer(bootstrap_servers=servers, transactional_id="tx"))
        self.transactional.init_transactions()

    def once(self) -> None:
        """Produce, run a transaction, join and leave a group, create and delete a topic, and describe all of them."""
        self.admin.create_topics([NewTopic("made", 2, 1)])
        for number in range(50):
            self.producer.send("t", b"%d" % number).result(60)
        with self.transactional.transaction():
            self.transactional.send("t", b"within")
        with Consumer(bootstrap_servers=self.servers, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            while not consumer.poll(5):
                pass
            consumer.commit()
        self.admin.describe_consumer_groups(["g"])
        self.admin.list_topics()
        self.admin.delete_topics(["made"])


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    broker = Broker(tmp_path, offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1)
    with broker, ExitStack() as undo:
        yield Work(broker.bootstrap_servers, undo)


def kinds() -> Counter[str]:
    """Count the objects of each kind after a garbage collection, without those of pytest, which has a `Mark` too."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if not str(kind.__module__).startswith("_pytest"))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_repeated_operations_leave_nothing_behind(work: Work) -> None:
    for _ in range(5):
        work.once()
    before, files, blocks = kinds(), open_files(), sys.getallocatedblocks()
    for _ in range(ROUNDS):
        work.once()
    after = kinds()
    more = after - before
    more["tuple"] -= more["Timer"]  # in which they wait
    assert {kind: count for kind, count in more.items() if count >= ROUNDS and kind not in REMEMBERED} == {}
    assert after["Mark"] <= MARKS * after["Sensor"]
    assert sys.getallocatedblocks() - blocks < BLOCKS_A_ROUND * ROUNDS
    assert open_files() - files < ROUNDS
