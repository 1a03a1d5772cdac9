"""ApiVersions: the advertised versions are those that are served."""

from __future__ import annotations

import pytest

from ottla.broker.apis.handlers import HANDLERS
from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.apis import NOT_SERVED
from ottla.protocol.conversation import decode_response
from ottla.protocol.headers import RequestHeader, encode_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire

NODE_ID = 1

KAFKA_4_4 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 5), 19: (2, 7),
    20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3),
    38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 50: (0, 0), 51: (0, 0), 48: (0, 1), 49: (0, 1),
    42: (0, 3), 43: (0, 2),
    44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0), 80: (0, 1), 81: (0, 0),
    76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2), 90: (0, 1), 91: (0, 0), 92: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 1), 89: (0, 1), 93: (0, 0), 94: (0, 0),
}  # fmt: skip
OF_METRICS = {71: (0, 0), 72: (0, 0)}
"""APIs that Kafka advertises with a plugin."""


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_the_served_ranges_are_those_of_kafka_4_4_but_produce_starts_at_0(wire: Wire, version: int) -> None:
    response = wire.ask(ApiVersionsRequest("librdkafka", "2.16.1"), version)
    assert response.error_code == 0
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == KAFKA_4_4


def test_every_advertised_api_has_a_handler(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert {api.api_key for api in response.api_keys} == HANDLERS.keys() - OF_METRICS.keys()


def test_client_metrics_are_requested_only_if_there_is_a_metrics_page() -> None:
    with Broker(metrics_listen="127.0.0.1:0") as broker, Wire(broker.bootstrap_servers) as wire:
        response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == KAFKA_4_4 | OF_METRICS


def test_a_later_version_is_answered_in_version_0_with_the_supported_range(wire: Wire) -> None:
    header = RequestHeader(ApiVersionsRequest.KEY, 99, 7, "new")
    wire.send_frame(encode_request_header(header, True) + b"\x02x\x02y\x00")
    correlation_id, response = decode_response(ApiVersionsResponse, 0, wire.receive_frame())
    assert (correlation_id, response.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 5)]
    assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1.")])
def test_a_client_with_an_invalid_software_name_or_version_is_rejected(wire: Wire, name: str, version: str) -> None:
    assert wire.ask(ApiVersionsRequest(name, version), 3).error_code == ErrorCode.INVALID_REQUEST


def test_apis_of_which_only_the_messages_exist_are_not_advertised(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 5)
    assert not NOT_SERVED.keys() & {api.api_key for api in response.api_keys}


def test_a_client_that_expects_this_node_gets_the_table(wire: Wire) -> None:
    cluster_id = wire.ask(MetadataRequest(topics=[]), 12).cluster_id
    response = wire.ask(ApiVersionsRequest("a", "1", cluster_id, NODE_ID), 5)
    assert response.error_code == ErrorCode.NONE
    assert response.api_keys


@pytest.mark.parametrize(("is_cluster", "node_id"), [(False, 1), (True, 2), (False, 2)])
def test_a_client_that_expects_another_node_has_to_return_to_its_bootstrap_servers(
    wire: Wire, is_cluster: bool, node_id: int
) -> None:
    cluster_id = wire.ask(MetadataRequest(topics=[]), 12).cluster_id if is_cluster else "another cluster"
    response = wire.ask(ApiVersionsRequest("a", "1", cluster_id, node_id), 5)
    assert response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert not response.api_keys


@pytest.mark.parametrize(("cluster_id", "node_id"), [("a cluster", -1), (None, 1)])
def test_a_client_names_both_the_cluster_and_the_node_or_neither(
    wire: Wire, cluster_id: str | None, node_id: int
) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1", cluster_id, node_id), 5)
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_features_are_listed_with_their_levels(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert finalized == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": 1,
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert response.finalized_features_epoch >= 0


def test_a_feature_with_minimum_level_0_is_hidden_from_clients_of_old_versions(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest("a", "1"), 3)
    assert [feature.name for feature in response.supported_features] == ["metadata.version"]
    assert len(response.finalized_features) == 7
