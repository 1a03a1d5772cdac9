from __future__ import annotations

import pytest

from ottla.client.network.api_versions import NodeApiVersions, next_version
from ottla.errors import UnsupportedVersionError
from ottla.protocol.apis import APIS
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest

FETCH = APIS[FetchRequest.KEY]


def broker(*ranges: tuple[int, int, int]) -> NodeApiVersions:
    return NodeApiVersions("kafka.example.org:9092", ranges)


def test_the_newest_version_both_speak_is_used() -> None:
    assert broker((FETCH.key, 4, 11)).usable(FETCH) == 11
    assert broker((FETCH.key, 0, 999)).usable(FETCH) == FETCH.versions.last


def test_a_message_may_need_an_older_version() -> None:
    assert broker((FETCH.key, 4, 17)).usable(FETCH, most=12) == 12


def test_a_kafka_too_old_is_named_with_api_and_versions() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        broker((FETCH.key, 0, 3)).usable(FETCH)
    text = str(caught.value)
    for fact in ("kafka.example.org:9092", "Fetch", "0 to 3", f"4 to {FETCH.versions.last}", "too old"):
        assert fact in text


def test_a_kafka_too_new_is_named_as_such() -> None:
    with pytest.raises(UnsupportedVersionError, match="too new"):
        broker((FETCH.key, 500, 600)).usable(FETCH)


def test_an_api_the_broker_does_not_have_is_named() -> None:
    with pytest.raises(UnsupportedVersionError, match="does not have Fetch"):
        broker().usable(FETCH)


def test_a_refused_version_is_followed_by_the_one_the_broker_offers() -> None:
    offer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=3)])
    assert next_version(offer, refused=4) == 3
    assert next_version(ApiVersionsResponse(error_code=35), refused=4) == 0
    assert next_version(ApiVersionsResponse(error_code=35), refused=0) is None


def test_metadata_that_cannot_but_make_topics_is_too_old() -> None:
    metadata = APIS[MetadataRequest.KEY]
    assert broker((metadata.key, 0, 4)).usable(metadata) == 4
    with pytest.raises(UnsupportedVersionError, match=r"Metadata 0 to 3, this client 4 to .* too old"):
        broker((metadata.key, 0, 3)).usable(metadata)
