"""The request log: one line for each request, for those who want it."""

from __future__ import annotations

import logging
import re

import pytest

from ottla.broker.embedded import Broker
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire, batch, produce


@pytest.mark.behaviour("B7")
def test_a_line_names_client_api_version_connection_and_latency(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ottla.request")
    with Wire(broker.bootstrap_servers, client_id="consumer-flights-1") as wire:
        wire.ask(MetadataRequest(None), 9)
        host, port = wire.socket.getsockname()
    (line,) = (record.getMessage() for record in caplog.records if record.name == "ottla.request")
    assert re.fullmatch(
        rf"Metadata v9 client\.id=consumer-flights-1 from {host}:{port}: \d+\.\d{{3}} ms, \d+ bytes", line
    )


@pytest.mark.behaviour("B7")
def test_a_request_without_an_answer_has_its_line_too(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ottla.request")
    with Wire(broker.bootstrap_servers, client_id=None) as wire:
        wire.create("t")
        wire.send(produce("t", batch([b"a"]), acks=0), 9)
        wire.ask(MetadataRequest(None), 9)
    lines = [record.getMessage() for record in caplog.records if record.name == "ottla.request"]
    assert [line.split()[0] for line in lines] == ["CreateTopics", "Produce", "Metadata"]
    assert lines[1].endswith("ms, 0 bytes")


def test_nobody_is_bothered_with_it_by_default(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.ask(MetadataRequest(None), 9)
    assert not [record for record in caplog.records if record.name == "ottla.request"]
