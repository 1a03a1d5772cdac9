"""`ottla mirror`, as a person runs it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Broker, Producer
from ottla.free_ports import free_port
from tests.cli.conftest import ottla, start
from tests.patience import eventually


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def test_topics_are_copied_once_and_a_summary_is_printed(address: str, target: str, topic: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"hello")
    command = ("mirror", topic, "--source-server", address, "--target-server", target, "--once", "--no-groups")
    first, again = ottla(*command), ottla(*command, "--json")
    assert (first.status, first.out) == (0, "1 records copied, 0 remaining\n")
    assert first.err == f"topic {topic} created with 1 partitions\n"
    assert json.loads(again.out) == {"records": 0, "rest": 0, "groups": {}}
    assert ottla("records", "head", topic, "--bootstrap-server", target).out == "hello\n"


def test_the_mirror_runs_until_ctrl_c(address: str, target: str, topic: str, tmp_path: Path) -> None:
    config = tmp_path / "target.properties"
    config.write_text(f"bootstrap.servers={target}\n")
    process = start(
        "mirror", topic, "--source-server", address, "--target-config", config, "--prefix", "a.", "--refresh", 0.2
    )
    try:
        with Producer(bootstrap_servers=address) as producer:
            producer.send(topic, b"later")
        head = ("records", "head", f"a.{topic}", "--bootstrap-server", target)
        eventually(lambda: ottla(*head).out == "later\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out.startswith("1 records copied, 0 remaining\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            (),
            "no address of the source: expected --source-server HOST:PORT, --source-context NAME or --source-config FILE",
        ),
        (("--source-server", "x:1"), "no address of the target: expected --target-server HOST:PORT"),
        (("(", "--source-server", "x:1", "--target-server", "y:1"), "'(': missing ), "),
        (("--source-server", "x:1", "--source-context", "prod"), "both give the address of the source: give only one"),
        (("--source-config", "/no/such"), "--source-config /no/such: No such file or directory"),
    ],
)
def test_mistakes_are_one_clear_error(words: tuple[str, ...], sentence: str) -> None:
    ended = ottla("mirror", *words)
    assert ended.status == 2
    assert sentence in ended.sentence


def test_a_name_that_matches_no_topic_is_reported(address: str, target: str, topic: str) -> None:
    sides = ("--source-server", address, "--target-server", target, "--once", "--no-groups")
    ended = ottla("mirror", f"{topic}-typo", *sides)
    assert (ended.status, ended.sentence) == (
        1, f"the source has no topic '{topic}-typo'; ottla topics list prints its topics"
    )  # fmt: skip
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"hello")
    ended = ottla("mirror", topic, f"{topic}-typo", *sides)
    assert (ended.status, ended.out) == (0, "1 records copied, 0 remaining\n")
    assert f"the source has no topic '{topic}-typo'\n" in ended.err


def test_a_cluster_is_not_mirrored_to_itself(address: str) -> None:
    ended = ottla("mirror", "--source-server", address, "--target-server", address, "--once")
    assert (ended.status, ended.out) == (1, "")
    assert "topics would be copied onto themselves: set a prefix for the target's topics" in ended.sentence


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_unreachable_cluster_is_named_after_five_seconds(address: str, side: str) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    source, target = (nowhere, address) if side == "source" else (address, nowhere)
    began = time.monotonic()
    ended = ottla("mirror", "--source-server", source, "--target-server", target, "--once")
    assert time.monotonic() - began < 20, "an admin would have waited a minute"
    assert (ended.status, ended.out) == (1, "")
    assert ended.sentence.startswith(f"the {side} cluster is not reachable: no Kafka broker answered within 5000 ms")
