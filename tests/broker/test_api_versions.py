"""ApiVersions: what the broker says it speaks is what it speaks."""

from __future__ import annotations

import pytest

from ottla.broker.embedded import Broker
from ottla.broker.handlers import HANDLERS
from ottla.errors import ErrorCode
from ottla.protocol.conversation import decode_response
from ottla.protocol.headers import RequestHeader, encode_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.wire import Wire

KAFKA_4_3 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7),
    20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3),
    38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 50: (0, 0), 51: (0, 0), 48: (0, 1), 49: (0, 1),
    42: (0, 2), 43: (0, 2),
    44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 55: (0, 2), 57: (0, 1), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0), 80: (0, 1), 81: (0, 0),
}  # fmt: skip
OF_METRICS = {71: (0, 0), 72: (0, 0)}
"""Of which Kafka tells where it has a plugin that takes them."""


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_the_ranges_are_those_of_kafka_4_3_but_produce_begins_at_0_and_update_features_ends_at_1(
    wire: Wire, version: int
) -> None:
    response = wire.ask(ApiVersionsRequest("librdkafka", "2.16.1"), version)
    assert response.error_code == 0
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == KAFKA_4_3


def test_everything_that_is_told_has_a_handler(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert {api.api_key for api in response.api_keys} == HANDLERS.keys() - OF_METRICS.keys()


def test_metrics_of_clients_are_asked_for_where_there_is_a_page_to_show_them() -> None:
    with Broker(metrics_listen="127.0.0.1:0") as broker, Wire(broker.bootstrap_servers) as wire:
        response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == KAFKA_4_3 | OF_METRICS


def test_a_version_from_the_future_is_answered_in_version_0_with_the_range_to_ask_for(wire: Wire) -> None:
    header = RequestHeader(ApiVersionsRequest.KEY, 99, 7, "new")
    wire.send_frame(encode_request_header(header, True) + b"\x02x\x02y\x00")
    correlation_id, response = decode_response(ApiVersionsResponse, 0, wire.receive_frame())
    assert (correlation_id, response.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 4)]
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1.")])
def test_software_without_a_proper_name_or_version_is_refused(wire: Wire, name: str, version: str) -> None:
    assert wire.ask(ApiVersionsRequest(name, version), 3).error_code == ErrorCode.INVALID_REQUEST


def test_features_are_told_with_their_levels(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "transaction.version": (0, 2),
    }
    assert finalized == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }
    assert response.finalized_features_epoch >= 0


def test_a_feature_that_may_be_missing_is_hidden_from_clients_that_cannot_read_of_it(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 3)
    assert [feature.name for feature in response.supported_features] == ["metadata.version"]
    assert len(response.finalized_features) == 5
