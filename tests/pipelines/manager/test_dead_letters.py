"""Dead letters, shown and sent again, each exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.main import main
from ottla.client.consumer.record import ConsumerRecord
from ottla.errors import ConfigError
from ottla.pipelines.file.reading import PipelineDefinition, read_text
from ottla.pipelines.manager.dead_letters import read_dead_letters, resend
from ottla.pipelines.manager.offsets import ResetTarget, find_start_offsets
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.manager.topics import ensure_topics

KAFKA = {"default.api.timeout.ms": 60_000, "linger.ms": 0, "fetch.min.bytes": 1}
"""Settings of all clients, including some that only one kind of client has."""
ERRORS = {"tolerance": "all", "deadLetterTopic": "dead"}


def read_in(folder: Path, servers: str, errors: dict[str, str] = ERRORS) -> PipelineDefinition:
    pipeline = {"source": {"type": "topic", "topic": "orders"}, "sink": {"type": "console"}}
    value = {
        "settings": {"bootstrap.servers": servers, "kafka": KAFKA},
        "pipelines": {"p": {**pipeline, "errors": errors}},
    }
    text = json.dumps(value)
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    (read,) = read_text(text.encode(), "p.yaml", folder, {})
    return read


def letter(producer: Producer, value: bytes, **message: str) -> None:
    known = {
        "topic": "orders",
        "partition": "1",
        "offset": "7",
        "connector.name": "p",
        "exception.message": "no",
    } | message
    headers = [("own", b"1"), *((f"__connect.errors.{name}", text.encode()) for name, text in known.items())]
    producer.send("dead", value, key=b"k", headers=headers).result(60)


def orders(servers: str) -> list[ConsumerRecord]:
    """Return the records in the partition of the dead letters' origin."""
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tp = TopicPartition("orders", 1)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        end, found = consumer.end_offsets([tp])[tp], list[ConsumerRecord]()
        while consumer.position(tp) < end:
            found += consumer.poll(timeout=1)
    return found


def test_dead_letters_return_to_their_source_once_and_those_of_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        read, home = read_in(tmp_path, servers), StateDirectory(tmp_path / "state", "p")
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("dead", 1, 1)])
        with Producer(bootstrap_servers=servers) as producer:
            letter(producer, b"a")
            letter(producer, b"other's", **{"connector.name": "q"})
            letter(producer, b"cut", **{"exception.message": "too large (cut here from 9 bytes)"})
            assert [one.came_from for one in read_dead_letters(read, home)] == ["orders-1:7", "orders-1:7"]
            assert resend(read, home) == (1, 1)
            assert resend(read, home) == (0, 0)
            letter(producer, b"b")
        assert main(["pipeline", "dead-letters", "resend", "p", "--file", str(tmp_path)]) == 0
        assert main(["pipeline", "dead-letters", "show", "p", "--file", str(tmp_path), "--json"]) == 0
        stdout = capsys.readouterr().out
        found = orders(servers)
    assert stdout.startswith("1 sent again")
    assert [one["value"] for one in json.loads(stdout.partition("\n")[2])] == ["a", "cut", "b"]
    assert [(one.key, one.value, list(one.headers)) for one in found] == [
        (b"k", b"a", [("own", b"1")]),
        (b"k", b"b", [("own", b"1")]),
    ]


def test_a_source_may_have_a_login_of_its_own_and_its_letters_are_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(listen="SASL_SSL://127.0.0.1:0", users={"alice": "al1ce"}) as broker:
        login = broker.client_settings()
        monkeypatch.setenv("LOGIN", login["sasl.username"])
        (tmp_path / "password").write_text(login["sasl.password"])
        own = {**login, "sasl.username": "${env:LOGIN}", "sasl.password": "${file:password}", "fetch.max.wait.ms": 100}
        source = {"type": "topic", "topic": "orders", "bootstrap.servers": own.pop("bootstrap.servers"), "kafka": own}
        pipeline = {"source": source, "sink": {"type": "console"}, "errors": ERRORS}
        text = json.dumps({"settings": {"bootstrap.servers": "127.0.0.1:1"}, "pipelines": {"p": pipeline}})
        (read,) = read_text(text.encode(), "p.yaml", tmp_path, os.environ)
        home = StateDirectory(tmp_path / "state", "p")
        with Admin(login) as admin, Producer(login) as producer:
            admin.create_topics([NewTopic("orders", 2, 1)])
            ensure_topics([read])
            letter(producer, b"a")
            assert set(admin.list_topics()) == {"dead", "orders"}
        assert [one.came_from for one in read_dead_letters(read, home)] == ["orders-1:7"]
        assert resend(read, home) == (1, 0)
        assert find_start_offsets(read, home, ResetTarget("latest")) == {
            TopicPartition("orders", 0): 0,
            TopicPartition("orders", 1): 2,
        }


def test_a_pipeline_without_a_dead_letter_topic_is_reported(tmp_path: Path) -> None:
    read = read_in(tmp_path, "127.0.0.1:1", {})
    with pytest.raises(ConfigError, match="pipeline 'p' has no dead letters: set"):
        read_dead_letters(read, StateDirectory(tmp_path, "p"))


KILLED = """
import os, signal, sys
from pathlib import Path
from ottla.pipelines.manager import dead_letters
from ottla.pipelines.manager.state_directory import StateDirectory
from tests.pipelines.manager.test_dead_letters import read_in

left, sending = int(sys.argv[3]), dead_letters.send

def send(producer, letter):
    global left
    sending(producer, letter)
    left -= 1
    if not left:
        producer.flush()
        os.kill(os.getpid(), signal.SIGKILL)

def sent(*counts):
    os.kill(os.getpid(), signal.SIGKILL)

dead_letters.send, dead_letters.Sent = send, sent
dead_letters.resend(read_in(Path(sys.argv[1]), sys.argv[2]), StateDirectory(Path(sys.argv[1], "state"), "p"))
"""


@pytest.mark.behaviour("D3")
def test_dead_letters_are_sent_again_once_despite_kills(tmp_path: Path) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        read, home = read_in(tmp_path, servers), StateDirectory(tmp_path / "state", "p")
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("dead", 1, 1)])
        with Producer(bootstrap_servers=servers) as producer:
            for name in (b"a", b"b", b"c"):
                letter(producer, name)
        for sends in (1, 3, 99):  # the last one is killed after it has committed
            command = [sys.executable, "-c", KILLED, str(tmp_path), servers, str(sends)]
            assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
        assert resend(read, home) == (0, 0)
        found = [one.value for one in orders(servers)]
    assert found == [b"a", b"b", b"c"]
