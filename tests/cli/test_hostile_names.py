"""Names with newlines and escape sequences in the output of commands and in the log: groups, members, clients, transactional ids."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.broker.wire import Wire
from tests.cli.conftest import RunningBroker, ottla

EVIL = "evil\n\x1b[2J\x9b1m\u202efine"
SHOWN = r"evil\n\x1b[2J\x9b1m\u202efine"
SETTINGS = ("-vv", "--set", "group.initial.rebalance.delay.ms=0")
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with a group, a member and an open transaction of such names."""
    broker = RunningBroker(tmp_path_factory.mktemp("data"), *SETTINGS)
    try:
        with hostile(broker.address):
            yield broker
    finally:
        broker.kill()


@contextmanager
def hostile(address: str) -> Iterator[None]:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic("t", 1)])
    consumer = Consumer(bootstrap_servers=address, group_id=EVIL, client_id=EVIL, group_protocol="classic")
    producer = Producer(bootstrap_servers=address, transactional_id=EVIL, client_id=EVIL)
    with consumer, producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"x", partition=0)
        producer.flush()
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(timeout=0.05)
        consumer.commit({TopicPartition("t", 0): 0})
        yield


@pytest.mark.parametrize(
    "words",
    [
        ("groups", "list"),
        ("groups", "describe", EVIL),
        ("groups", "describe", EVIL, "--members"),
        ("groups", "describe", EVIL, "--state"),
        ("groups", "watch", EVIL, "--seconds", "0.5"),
        ("transactions", "list"),
        ("transactions", "describe", EVIL),
        ("configs", "describe", "--group", EVIL, "--all"),
    ],
    ids=lambda words: " ".join(word for word in words if word != EVIL),
)
def test_a_hostile_name_is_printed_on_one_line_without_control_characters(
    attacked: RunningBroker, words: tuple[str, ...]
) -> None:
    done = ottla(*words, "--bootstrap-server", attacked.address)
    assert done.status == 0, done.err
    assert not CONTROLS.search(done.out + done.err)
    assert SHOWN in done.out or "watch" in words


@pytest.mark.parametrize("words", [("groups", "describe", EVIL, "--members"), ("transactions", "list")])
def test_json_has_the_name_itself_and_nothing_that_a_terminal_obeys(
    attacked: RunningBroker, words: tuple[str, ...]
) -> None:
    done = ottla(*words, "--json", "--bootstrap-server", attacked.address)
    assert not CONTROLS.search(done.out)
    assert EVIL in json.loads(done.out)[0].values()


def test_a_mistake_that_quotes_a_name_is_one_clean_line(attacked: RunningBroker) -> None:
    done = ottla("groups", "describe", f"no {EVIL}", "--bootstrap-server", attacked.address)
    assert done.status == 1
    assert not CONTROLS.search(done.sentence)


def test_a_name_cannot_forge_a_line_of_a_brokers_log(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data", *SETTINGS)
    with hostile(broker.address), Wire(broker.address, EVIL) as wire:
        wire.metadata("t")
    err = broker.end(signal.SIGTERM).err
    assert SHOWN in err
    assert not CONTROLS.search(err)
    assert all(re.match(r"\d{4}-\d\d-\d\d |ottla broker: | ", line) for line in err.splitlines())
