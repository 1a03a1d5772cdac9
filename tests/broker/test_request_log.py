"""The optional request log: one line of JSON per request."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import pytest

from ottla import Consumer
from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ConfigError
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire, batch, fetch, produce


def lines(caplog: pytest.LogCaptureFixture, broker: Broker) -> list[dict[str, Any]]:
    """Return the lines of this broker; another one of this process may have clients, too."""
    loop = f"ottla-{broker.bootstrap_servers}"
    messages = [record for record in caplog.records if record.name == "ottla.request" and record.threadName == loop]
    return [json.loads(record.getMessage()) for record in messages]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Enable the request log."""
    caplog.set_level(logging.DEBUG, "ottla.request")
    return caplog


@pytest.mark.behaviour("B7")
def test_a_line_has_client_api_version_connection_sizes_and_times(
    broker: Broker, logged: pytest.LogCaptureFixture
) -> None:
    with Broker() as other, Wire(other.bootstrap_servers) as stranger:
        stranger.ask(MetadataRequest(None), 9)
    with Wire(broker.bootstrap_servers, client_id="consumer-flights-1") as wire:
        answer = wire.receive_frame_of(MetadataRequest(None), 9)
        host, port = wire.socket.getsockname()
        wire.ask(MetadataRequest(None), 9)
    line = lines(logged, broker)[0]
    assert (line["api"], line["version"], line["client_id"]) == ("Metadata", 9, "consumer-flights-1")
    assert (line["connection"], line["listener"]) == (f"{host}:{port}", "PLAINTEXT")
    assert (line["response_bytes"], line["errors"], line["slow"]) == (len(answer), [], False)
    assert line["request_bytes"] > 20
    parts = sum(line[f"{part}_ms"] for part in ("queue", "local", "remote", "response_queue", "send"))
    assert parts == pytest.approx(line["total_ms"], abs=0.01)


@pytest.mark.behaviour("B7", "C11")
def test_consumers_are_logged_with_their_groups_and_a_new_member_with_two_joins(
    broker: Broker, logged: pytest.LogCaptureFixture
) -> None:
    servers = broker.bootstrap_servers
    with Consumer(bootstrap_servers=servers, group_id="billing") as plain:
        join(plain)
    with Consumer(bootstrap_servers=servers, group_id="paying", group_instance_id="till-1") as static:
        join(static)
    assert re.fullmatch(r"consumer-billing-\d+", plain.client_id)
    assert static.client_id == "consumer-paying-till-1"
    joins = [(line["client_id"], *line["errors"]) for line in lines(logged, broker) if line["api"] == "JoinGroup"]
    # On a busy machine the topic may be created while the group joins, and the member joins once more for it.
    assert list(dict.fromkeys(joins)) == [
        (plain.client_id, "MEMBER_ID_REQUIRED"),
        (plain.client_id,),
        (static.client_id,),
    ], "a static member is known by its instance id"
    known = {
        line["client_id"]
        for line in lines(logged, broker)
        if line["api"] in ("FindCoordinator", "SyncGroup", "Metadata")
    }
    assert known == {plain.client_id, static.client_id}


def join(consumer: Consumer) -> None:
    consumer.subscribe(["t"])
    deadline = time.monotonic() + 30
    while not consumer.group_metadata().member_id:
        assert time.monotonic() < deadline, "it did not join in time"
        consumer.poll(0.05)


@pytest.mark.behaviour("B7")
def test_a_request_without_a_response_is_logged(broker: Broker, logged: pytest.LogCaptureFixture) -> None:
    with Wire(broker.bootstrap_servers, client_id=None) as wire:
        wire.create("t")
        wire.send(produce("t", batch([b"a"]), acks=0), 9)
        wire.ask(MetadataRequest(None), 9)
        wire.ask(MetadataRequest(None), 9)
    assert [line["api"] for line in lines(logged, broker)][:3] == ["CreateTopics", "Produce", "Metadata"]
    assert (lines(logged, broker)[1]["response_bytes"], lines(logged, broker)[1]["client_id"]) == (0, None)


@pytest.mark.behaviour("B7")
def test_a_waiting_fetch_is_not_slow_and_requests_behind_it_have_a_queue_time(logged: pytest.LogCaptureFixture) -> None:
    with Broker(slow_request_ms=500) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.send(fetch("t", max_wait_ms=2_000), 12)
        wire.send(MetadataRequest(None), 9)
        wire.receive_frame()
        wire.receive_frame()
        wire.ask(MetadataRequest(None), 9)
        by_api = {line["api"]: line for line in reversed(lines(logged, broker))}
    assert by_api["Fetch"]["remote_ms"] > 500
    assert not by_api["Fetch"]["slow"]
    assert by_api["Metadata"]["queue_ms"] > 500
    assert by_api["Metadata"]["slow"], "its client had to wait for something it did not ask for"


@pytest.mark.behaviour("B7")
def test_the_errors_of_a_response_are_logged(broker: Broker, logged: pytest.LogCaptureFixture) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.metadata("nobody", "a b")
        wire.metadata()
    assert lines(logged, broker)[0]["errors"] == ["UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"]


@pytest.mark.behaviour("B7")
@pytest.mark.parametrize("process", [False, True])
def test_the_log_is_written_to_a_configured_file(tmp_path: Path, process: bool) -> None:
    path = tmp_path / "requests"
    with Broker(process=process, request_log=str(path)) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(MetadataRequest(None), 9)
    assert [json.loads(line)["api"] for line in path.read_text().splitlines()] == ["Metadata"]


def test_an_unusable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"request\.log = .*: Is a directory"):
        Broker(request_log=str(tmp_path)).start()


def test_requests_are_not_logged_by_default(broker: Broker, wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.ask(MetadataRequest(None), 9)
    assert not lines(caplog, broker)
