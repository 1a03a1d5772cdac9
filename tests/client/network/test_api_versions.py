from __future__ import annotations

import pytest

from ottla.client.network.api_versions import NodeApiVersions, choose_next_version
from ottla.errors import UnsupportedVersionError
from ottla.protocol.apis import APIS
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest

FETCH = APIS[FetchRequest.KEY]


def broker(*ranges: tuple[int, int, int]) -> NodeApiVersions:
    return NodeApiVersions("kafka.example.org:9092", ranges)


def test_the_newest_version_that_both_sides_support_is_used() -> None:
    assert broker((FETCH.key, 4, 11)).usable_version(FETCH) == 11
    assert broker((FETCH.key, 0, 999)).usable_version(FETCH) == FETCH.versions.last


def test_a_message_may_need_an_older_version() -> None:
    assert broker((FETCH.key, 4, 17)).usable_version(FETCH, most=12) == 12


def test_a_kafka_too_old_is_named_with_api_and_versions() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        broker((FETCH.key, 0, 3)).usable_version(FETCH)
    text = str(caught.value)
    for fact in ("kafka.example.org:9092", "Fetch", "0 to 3", f"4 to {FETCH.versions.last}", "too old"):
        assert fact in text


def test_a_kafka_too_new_is_named_as_such() -> None:
    with pytest.raises(UnsupportedVersionError, match="too new"):
        broker((FETCH.key, 500, 600)).usable_version(FETCH)


def test_an_api_the_broker_does_not_have_is_named() -> None:
    with pytest.raises(UnsupportedVersionError, match="does not have Fetch"):
        broker().usable_version(FETCH)


def test_after_an_unsupported_version_the_version_of_the_broker_is_used() -> None:
    offer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=3)])
    assert choose_next_version(offer, refused=4) == 3
    assert choose_next_version(ApiVersionsResponse(error_code=35), refused=4) == 0
    assert choose_next_version(ApiVersionsResponse(error_code=35), refused=0) is None


def test_a_metadata_version_that_always_creates_topics_is_too_old() -> None:
    metadata = APIS[MetadataRequest.KEY]
    assert broker((metadata.key, 0, 4)).usable_version(metadata) == 4
    with pytest.raises(UnsupportedVersionError, match=r"Metadata 0 to 3, this client 4 to .* too old"):
        broker((metadata.key, 0, 3)).usable_version(metadata)
