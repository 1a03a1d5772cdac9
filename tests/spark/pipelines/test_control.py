"""Pipelines that are controlled from outside while they run: by commands, and by Kafka Connect's REST interface."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.cli.main import main
from ottla.pipelines.file.reading import read_pipelines
from ottla.pipelines.manager.control import Remote, serve_control
from ottla.pipelines.manager.manager import Manager
from tests.patience import eventually
from tests.spark.pipelines.test_manager import committed, topic
from tests.spark.topics import Topics

LONG = 120.0


class Running:
    """A manager in a thread of the test's process, and commands about its file."""

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self.spark, self.file = spark, file

    def write(self, servers: str, **pipelines: Any) -> None:
        value = {"settings": {"bootstrap.servers": servers}, "pipelines": pipelines}
        self.file.write_text(json.dumps(value), encoding="utf-8")

    @contextmanager
    def manager(self) -> Iterator[Remote]:
        manager = Manager(
            read_pipelines(self.file), self.spark, read_again=lambda name: by_name(read_pipelines(self.file), name)
        )
        with serve_control(manager) as address:
            thread = threading.Thread(target=manager.run)
            thread.start()
            try:
                yield Remote(address)
            finally:
                manager.stop()
                thread.join()

    def command(self, *arguments: str) -> int:
        return main(["pipeline", *arguments, "--file", str(self.file)])


def by_name(reads: list[Any], name: str) -> Any:
    return next(read for read in reads if read.name == name)


@pytest.fixture
def running(spark: SparkSession, broker: Broker, tmp_path: Path) -> Running:
    return Running(spark, tmp_path / "p.yaml")


def values(topics: Topics, name: str) -> list[bytes]:
    return [record.value for record in committed(topics.servers, name)]


def state_of(remote: Remote) -> str:
    """Return the state. RUNNING only after the first event of a batch: its records may be visible earlier."""
    return str(remote.request_connector("GET", "copy", "status")["connector"]["state"])


def offsets(remote: Remote) -> list[int]:
    """Return the reported offset of each partition."""
    return [each["offset"]["kafka_offset"] for each in remote.request_connector("GET", "copy", "offsets")["offsets"]]


@pytest.mark.behaviour("D3")
def test_a_pipeline_that_is_paused_stopped_moved_and_restarted_writes_each_record_as_often_as_requested(
    running: Running, topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = topics.create("in"), topics.create("out")
    topics.send(source, "a", "b", key=b"k")
    copy = {"source": topic(source), "sink": topic(out), "trigger": "100 milliseconds"}
    running.write(topics.servers, copy=copy, other={**copy, "sink": {"type": "console"}})
    with running.manager() as remote:
        eventually(lambda: values(topics, out) == [b"a", b"b"], LONG)
        assert remote.request("GET", "/connectors") == ["copy", "other"]
        assert running.command("pause", "copy") == 0
        assert state_of(remote) == "PAUSED"
        topics.send(source, "c", key=b"k")
        assert running.command("offsets", "reset", "copy", "--to-earliest") == 1
        refused = capsys.readouterr().err
        assert "pipeline 'copy' is being run by process" in refused
        assert "stop it first, by `ottla pipeline stop copy`" in refused
        assert running.command("resume", "copy") == 0
        assert "copy is running" in capsys.readouterr().out
        eventually(lambda: values(topics, out) == [b"a", b"b", b"c"] and offsets(remote) == [3], LONG)
        assert running.command("stop", "copy") == 0
        assert running.command("offsets", "show", "copy") == 0
        assert capsys.readouterr().out.splitlines()[-1].split() == [source, "0", "3"]
        assert running.command("offsets", "reset", "copy", "--to-offsets", json.dumps({source: {"0": 9}})) == 1
        assert f"offset 9 of {source}-0: it has 0 to 3" in capsys.readouterr().err
        assert running.command("offsets", "reset", "copy", "--to-offsets", json.dumps({source: {"0": 1}})) == 0
        shown = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert shown == [["TOPIC", "PARTITION", "NEW-OFFSET"], [source, "0", "1"]]
        insert = {"type": "InsertHeader", "header": "h", "value.literal": "1"}
        running.write(topics.servers, copy={**copy, "transforms": [insert]})
        assert running.command("resume", "copy") == 0
        eventually(lambda: values(topics, out) == [b"a", b"b", b"c", b"b", b"c"], LONG)
        records = committed(topics.servers, out)
        assert [bool(list(record.headers)) for record in records] == [False, False, False, True, True]
        running.write(topics.servers, copy={**copy, "transforms": [{"type": "MaskField", "fields": "no"}]})
        assert running.command("restart", "copy") == 1
        assert "unknown field 'no'" in capsys.readouterr().err
        eventually(lambda: state_of(remote) == "RUNNING", LONG)


def test_connect_s_tools_find_a_pipeline_as_a_connector(running: Running, topics: Topics) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    running.write(topics.servers, copy={"source": topic(source), "sink": topic(out), "trigger": "100 milliseconds"})
    topics.send(source, "a")
    with running.manager() as remote:
        eventually(lambda: offsets(remote) and state_of(remote) == "RUNNING", LONG)
        assert remote.request_connector("GET", "copy", "offsets")["offsets"] == [
            {"partition": {"kafka_topic": source, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
        ]
        info = remote.request_connector("GET", "copy")
        assert (info["name"], info["type"], info["tasks"]) == ("copy", "sink", [{"connector": "copy", "task": 0}])
        assert info["config"]["source.topic"] == source
        status = remote.request("GET", "/connectors?expand=status&expand=info")["copy"]["status"]
        assert status["tasks"] == [{"id": 0, "state": "RUNNING", "worker_id": remote.address}]
        assert remote.request_connector("GET", "copy", "topics") == {"copy": {"topics": sorted([source, out])}}
        assert raw(remote, "PUT", "/connectors/copy/topics/reset")[0] == 403
        assert raw(remote, "HEAD", "/") == (200, None)
        assert raw(remote, "HEAD", "/connectors/cpy") == (404, None)
        assert raw(remote, "PUT", "/connectors/copy/stop")[0] == 204
        assert raw(remote, "DELETE", "/connectors/copy/offsets")[0] == 200
        assert raw(remote, "PUT", "/connectors/copy/resume")[0] == 202
        eventually(lambda: values(topics, out) == [b"a", b"a"] and state_of(remote) == "RUNNING", LONG)
        assert raw(remote, "POST", "/connectors/copy/restart?includeTasks=true&onlyFailed=true")[0] == 202
        assert raw(remote, "DELETE", "/connectors/copy/offsets") == (
            409,
            {"error_code": 409, "message": "pipeline 'copy' is running; stop it first, then its offsets can be reset"},
        )
        assert raw(remote, "GET", "/connectors/cpy/status")[1]["message"] == "there is no pipeline 'cpy'"
        status_code, answer = raw(remote, "POST", "/connectors")
        assert (status_code, answer["error_code"]) == (405, 405)
        assert "pipelines are defined by the pipeline file" in answer["message"]
        assert raw(remote, "GET", "/connectors", Origin="http://evil.example")[0] == 403
        assert raw(remote, "GET", "/connectors", Host="evil.example")[0] == 403


def raw(remote: Remote, method: str, path: str, **headers: str) -> tuple[int, Any]:
    """Status and body."""
    host, _, port = remote.address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=60)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data) if data else None


def test_a_table_is_served_by_key_and_a_tombstone_deletes_a_key(running: Running, topics: Topics) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-latest"
    topics.send(source, '{"n": 1}', '{"n": 2}', key=b"a b")
    topics.send(source, '{"n": 3}', key=b"gone")
    shaped = topic(source, valueFormat="json", valueSchema="n bigint")
    running.write(
        topics.servers, table={"source": shaped, "sink": topic(out, table=True), "trigger": "100 milliseconds"}
    )
    with running.manager() as remote:
        eventually(lambda: raw(remote, "GET", f"/tables/{out}/gone") == (200, {"n": 3}), LONG)
        assert raw(remote, "GET", f"/tables/{out}/a%20b") == (200, {"n": 2})
        assert raw(remote, "GET", f"/tables/{out}/x")[1]["message"] == f"table {out!r} has no key 'x'"
        topics.send(source, None, key=b"gone")
        eventually(lambda: raw(remote, "GET", f"/tables/{out}/gone")[0] == 404, LONG)
        assert remote.request("GET", "/tables") == [{"name": out, "keys": 1, "ready": True}]


def test_a_pipeline_fails_if_its_checkpoints_disappear_and_does_not_start_again(
    running: Running, topics: Topics
) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, "a")
    running.write(topics.servers, copy={"source": topic(source), "sink": topic(out), "trigger": "100 milliseconds"})
    with running.manager() as remote:
        eventually(lambda: offsets(remote), LONG)
        shutil.rmtree(running.file.parent / "state")
        eventually(lambda: state_of(remote) == "FAILED", LONG)
        answer = remote.request_connector("GET", "copy", "status")["tasks"][0]["trace"]
        assert "which has its checkpoint, was deleted or replaced" in answer
        assert values(topics, out) == [b"a"]


def test_a_pipeline_paused_without_a_manager_stays_paused_in_the_next_one(
    running: Running, topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, "a")
    running.write(topics.servers, copy={"source": topic(source), "sink": topic(out), "trigger": "100 milliseconds"})
    assert running.command("pause", "copy") == 0
    assert "it does not run now, and the next `ottla pipeline run` keeps this state" in capsys.readouterr().out
    with running.manager() as remote:
        assert state_of(remote) == "PAUSED"
        assert running.command("resume", "copy") == 0
        eventually(lambda: values(topics, out) == [b"a"], LONG)
    assert running.command("restart", "copy") == 1
    assert "pipeline 'copy' does not run: start it with `ottla pipeline run" in capsys.readouterr().err
