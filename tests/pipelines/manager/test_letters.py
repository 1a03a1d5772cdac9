"""Dead letters, shown and sent again, each exactly once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.main import main
from ottla.client.consumer.record import ConsumerRecord
from ottla.errors import ConfigError
from ottla.pipelines.file.reading import Read, read_text
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.letters import letters_of, resend

ERRORS = {"tolerance": "all", "deadLetterTopic": "dead"}


def read_in(folder: Path, servers: str, errors: dict[str, str] = ERRORS) -> Read:
    pipeline = {"source": {"type": "topic", "topic": "orders"}, "sink": {"type": "console"}}
    value = {"settings": {"bootstrap.servers": servers}, "pipelines": {"p": {**pipeline, "errors": errors}}}
    text = json.dumps(value)
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    (read,) = read_text(text.encode(), "p.yaml", folder, {})
    return read


def letter(producer: Producer, value: bytes, **told: str) -> None:
    known = {
        "topic": "orders",
        "partition": "1",
        "offset": "7",
        "connector.name": "p",
        "exception.message": "no",
    } | told
    headers = [("own", b"1"), *((f"__connect.errors.{name}", text.encode()) for name, text in known.items())]
    producer.send("dead", value, key=b"k", headers=headers).result(60)


def orders(servers: str) -> list[ConsumerRecord]:
    """What is in the partition that the letters came from."""
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tp = TopicPartition("orders", 1)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        end, found = consumer.end_offsets([tp])[tp], list[ConsumerRecord]()
        while consumer.position(tp) < end:
            found += consumer.poll(timeout=1)
    return found


def test_letters_go_back_where_they_came_from_once_and_those_of_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        read, home = read_in(tmp_path, servers), Home(tmp_path / "state", "p")
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("dead", 1, 1)])
        with Producer(bootstrap_servers=servers) as producer:
            letter(producer, b"a")
            letter(producer, b"other's", **{"connector.name": "q"})
            letter(producer, b"cut", **{"exception.message": "too large (cut here from 9 bytes)"})
            assert [one.came_from for one in letters_of(read, home)] == ["orders-1:7", "orders-1:7"]
            assert resend(read, home) == (1, 1)
            assert resend(read, home) == (0, 0)
            letter(producer, b"b")
        assert main(["pipeline", "dead-letters", "resend", "p", "--file", str(tmp_path)]) == 0
        assert main(["pipeline", "dead-letters", "show", "p", "--file", str(tmp_path), "--json"]) == 0
        told = capsys.readouterr().out
        found = orders(servers)
    assert told.startswith("1 sent again")
    assert [one["value"] for one in json.loads(told.partition("\n")[2])] == ["a", "cut", "b"]
    assert [(one.key, one.value, list(one.headers)) for one in found] == [
        (b"k", b"a", [("own", b"1")]),
        (b"k", b"b", [("own", b"1")]),
    ]


def test_a_pipeline_without_a_dead_letter_topic_says_so(tmp_path: Path) -> None:
    read = read_in(tmp_path, "127.0.0.1:1", {})
    with pytest.raises(ConfigError, match="pipeline 'p' has no dead letters: set"):
        letters_of(read, Home(tmp_path, "p"))
