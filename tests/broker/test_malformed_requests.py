"""Malformed input: one clear log line, one closed connection, and no effect on other clients."""

from __future__ import annotations

import logging
import random
import struct

import pytest

from ottla.broker.apis.broker_requests import BrokerRequests
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.network_server.connection import Connection
from ottla.broker.replica_manager.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from ottla.errors import ErrorCode
from ottla.protocol.headers import RequestHeader, encode_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.storage.log import Log
from tests.broker.wire import Wire, fetch


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int) -> bytes:
    return encode_request_header(RequestHeader(key, version, 1, "x"), False)


NOISE = random.Random(7).randbytes(40)
CASES = {
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "looks like HTTP"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), "looks like TLS"),
    "a frame of 2 GB": (struct.pack(">i", 2**31 - 1) + bytes(100), "a frame of 2147483647 bytes was announced"),
    "a negative frame": (struct.pack(">i", -5) + bytes(10), "a frame of -5 bytes was announced"),
    "noise": (frame(NOISE), "no API has key"),
    "an empty frame": (frame(b""), "too short for a request header"),
    "an API that is not served": (
        frame(header(52, 0)),
        "does not serve Vote (API key 52)",
    ),
    "an unknown API": (frame(header(999, 0)), "no API has key 999"),
    "a version that is too old": (frame(header(ProduceRequest.KEY, 1)), "Produce v1, and versions 3-13 are supported"),
    "a version that is too new": (frame(header(MetadataRequest.KEY, 77)), "Metadata v77, and versions 0-13 are supported"),
    "a body that ends too early": (frame(header(MetadataRequest.KEY, 4) + b"\x00\x00"), "MetadataRequest v4"),
    "a list of 2 billion": (frame(header(MetadataRequest.KEY, 4) + b"\x7f\xff\xff\xff"), "2147483647 items are announced"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_request_is_logged_in_one_line_with_its_address(
    wire: Wire, broker: Broker, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    sent, said = CASES[case]
    with Wire(broker.bootstrap_servers) as bad:
        host, port = bad.socket.getsockname()
        bad.socket.sendall(sent)
        assert bad.hung_up()
    assert wire.ask(MetadataRequest(None), 9).topics == []
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1, warnings
    assert said in warnings[0]
    assert f"{host}:{port}" in warnings[0]


def test_a_disconnected_client_is_no_warning(wire: Wire, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with Wire(broker.bootstrap_servers) as other:
        other.ask(MetadataRequest(None))
        other.send(MetadataRequest(None))
    with Wire(broker.bootstrap_servers) as other:
        other.socket.sendall(b"\0\0")
    wire.ask(MetadataRequest(None))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_an_internal_error_closes_one_connection_and_is_logged_with_its_traceback(
    wire: Wire, broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.broker.apis.handlers import HANDLERS

    def broken(*_: object) -> object:
        raise ZeroDivisionError("planted")

    planted = HANDLERS[MetadataRequest.KEY]._replace(handle=broken)  # type: ignore[arg-type]
    monkeypatch.setitem(HANDLERS._loaded, MetadataRequest.KEY, planted)
    with Wire(broker.bootstrap_servers) as unlucky:
        unlucky.send(MetadataRequest(None))
        assert unlucky.hung_up()
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0
    assert "ZeroDivisionError: planted" in caplog.text


def test_an_internal_error_of_a_request_that_has_waited_is_logged_and_closes_its_connection(
    wire: Wire, broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled module that is older than its callers fails anywhere, also behind a fetch that waits."""
    wire.create("t")
    original = BrokerRequests.answer_directly

    def broken(table: BrokerRequests, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        if int.from_bytes(frame[:2]) == MetadataRequest.KEY:
            raise AttributeError("planted")
        return original(table, connection, frame, now, arrived)

    monkeypatch.setattr(BrokerRequests, "answer_directly", broken)
    with Wire(broker.bootstrap_servers) as unlucky:
        unlucky.send(fetch("t", max_wait_ms=50), 12)
        unlucky.send(MetadataRequest(None))
        unlucky.receive(fetch("t"), 12)
        assert unlucky.hung_up()
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0
    assert caplog.text.count("AttributeError: planted") == 1
    assert "closing the connection" in caplog.text


def test_a_handler_that_cannot_be_loaded_closes_one_connection(
    wire: Wire, broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade changes the files of a broker that runs, and modules that it loads late do not fit to what it has."""
    from ottla.broker.apis import handlers

    def missing(key: int) -> object:
        raise ImportError("planted")

    monkeypatch.setattr(handlers, "load_handler", missing)
    monkeypatch.delitem(handlers.HANDLERS._loaded, DescribeGroupsRequest.KEY, raising=False)
    with Wire(broker.bootstrap_servers) as unlucky:
        unlucky.send(DescribeGroupsRequest(["g"]), 5)
        assert unlucky.hung_up()
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0
    assert "restart the broker if its program files were changed" in caplog.text
    assert "ImportError: planted" in caplog.text


def test_a_response_that_cannot_be_encoded_closes_one_connection(
    wire: Wire, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.broker.apis.handlers import HANDLERS

    def too_long(*_: object) -> object:
        return MetadataResponse(cluster_id="x" * 40_000)

    planted = HANDLERS[MetadataRequest.KEY]._replace(handle=too_long)  # type: ignore[arg-type]
    monkeypatch.setitem(HANDLERS._loaded, MetadataRequest.KEY, planted)
    with Wire(broker.bootstrap_servers) as other:
        other.send(MetadataRequest(None))
        assert other.hung_up()
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0


def test_a_long_error_message_is_truncated(wire: Wire) -> None:
    config = CreatableTopicConfig("x" * 32_760, "1")
    (result,) = wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1, configs=[config])]), 7).topics
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert str(result.error_message).endswith("x …")
    assert wire.metadata().topics == []


@pytest.mark.parametrize("epoch", [FINAL_EPOCH, INITIAL_EPOCH], ids=["the short way", "the ordinary way"])
def test_a_waiting_fetch_that_fails_later_closes_one_connection(
    wire: Wire, broker: Broker, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    wire.create("t")
    with Wire(broker.bootstrap_servers) as other:
        request = fetch("t", max_wait_ms=60_000)
        request.session_epoch = epoch
        other.send(request, 12)
        wire.metadata()  # by then the other request waits
        monkeypatch.setattr(Log, "last_stable_offset", property(lambda _: 1 / 0))
        wire.produce("t", b"a")
        assert other.hung_up()
    monkeypatch.undo()
    assert wire.fetch("t").high_watermark == 1


def test_bytes_after_the_end_of_a_request_are_ignored(wire: Wire) -> None:
    """Librdkafka sends an invalid name in a request for all topics."""
    wire.send_frame(encode_request_header(RequestHeader(MetadataRequest.KEY, 13, 5, "x"), True) + bytes(4) + b"\1\0\0")
    assert wire.receive(MetadataRequest(), 13)[0] == 5
