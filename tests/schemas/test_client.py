from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from typing import Any

import pytest

from ottla.errors import ConfigError
from ottla.schemas import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from ottla.schemas.caches import BoundedCache
from ottla.schemas.exchange import Reply, read_token
from tests.schemas.small_registry import SmallRegistry

TEXT = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
QUICK = {"retries.wait.ms": 0, "max.retries": 2}


def test_a_registered_schema_is_found_by_id_guid_version_and_content(client: SchemaRegistryClient) -> None:
    number = client.register_schema("orders-value", Schema(TEXT))

    found = client.get_latest_version("orders-value")

    assert (found.subject, found.version, found.schema_id) == ("orders-value", 1, number)
    assert client.get_schema(number).schema_str == TEXT
    assert found.guid is not None
    assert client.get_schema_by_guid(found.guid).schema_str == TEXT
    assert client.lookup_schema("orders-value", Schema(TEXT)).schema_id == number
    assert client.get_version("orders-value", 1) == found
    assert client.get_subjects() == ["orders-value"]


def test_each_id_is_requested_once(client: SchemaRegistryClient, registry: SmallRegistry) -> None:
    number = client.register_schema("orders-value", Schema(TEXT))
    registry.requests.clear()

    for _ in range(3):
        client.get_schema(number)
        client.register_schema("orders-value", Schema(TEXT))

    assert [path for _, path, _ in registry.requests] == [f"/schemas/ids/{number}"]


def test_the_latest_version_is_requested_again_after_its_time(registry: SmallRegistry) -> None:
    with SchemaRegistryClient({"url": registry.url, "cache.latest.ttl.sec": 0}) as client:
        client.register_schema("orders-value", Schema(TEXT))
        client.get_latest_version("orders-value")
        client.register_schema("orders-value", Schema('"string"'))

        assert client.get_latest_version("orders-value").version == 2


def test_a_cache_keeps_only_the_most_recently_used_values() -> None:
    cache: BoundedCache[int] = BoundedCache(2, None, lambda: 0.0)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)

    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_subjects_with_slashes_are_one_part_of_the_path(client: SchemaRegistryClient) -> None:
    client.register_schema("a/b c?d", Schema(TEXT))

    assert client.get_subjects() == ["a/b c?d"]


def test_an_error_has_status_code_and_sentence(client: SchemaRegistryClient) -> None:
    with pytest.raises(
        SchemaRegistryError, match=r"Version 1 not found\. \(HTTP status code 404, SR code 40402\)"
    ) as info:
        client.get_version("nothing", 1)

    assert (info.value.http_status_code, info.value.error_code) == (404, 40402)
    assert info.value.error_message == "Version 1 not found."


def test_retriable_errors_are_tried_again(registry: SmallRegistry) -> None:
    registry.failures = [503, 500]
    with SchemaRegistryClient({"url": registry.url, **QUICK}) as client:
        assert client.get_subjects() == []

        registry.failures = [503, 503, 503]
        with pytest.raises(SchemaRegistryError, match="planted"):
            client.get_subjects()


def test_other_errors_are_not_tried_again(registry: SmallRegistry) -> None:
    registry.failures = [422]
    with SchemaRegistryClient({"url": registry.url, **QUICK}) as client, pytest.raises(SchemaRegistryError):
        client.get_subjects()
    assert len(registry.requests) == 1


def test_the_next_address_is_used_if_one_does_not_answer(registry: SmallRegistry) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listen, it refuses connections
        silent = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with SchemaRegistryClient({"url": f"{silent}, {registry.url}", **QUICK}) as client:
            assert client.get_subjects() == []
        with (
            SchemaRegistryClient({"url": silent, **QUICK}) as client,
            pytest.raises(SchemaRegistryError, match=r"no schema registry answers at http://127.*check url"),
        ):
            client.get_subjects()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"basic.auth.user.info": "amy:se:cret"}, "Basic " + b64encode(b"amy:se:cret").decode()),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc"}, "Bearer abc"),
        (
            {
                "bearer.auth.credentials.source": "CUSTOM",
                "bearer.auth.custom.provider.function": lambda config: {"bearer.auth.token": config["made"]},
                "bearer.auth.custom.provider.config": {"made": "xyz"},
            },
            "Bearer xyz",
        ),
    ],
)
def test_credentials_are_sent(registry: SmallRegistry, settings: dict[str, Any], expected: str) -> None:
    with SchemaRegistryClient({"url": registry.url, **settings}) as client:
        client.get_subjects()

    assert registry.requests[0][2]["Authorization"] == expected


def test_user_and_password_may_be_in_the_address(registry: SmallRegistry) -> None:
    with SchemaRegistryClient({"url": registry.url.replace("//", "//amy:p%40ss@")}) as client:
        client.get_subjects()

    assert registry.requests[0][2]["Authorization"] == "Basic " + b64encode(b"amy:p@ss").decode()


def test_a_token_comes_from_the_oauth_server_once(registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = registry.answer

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/token":
            return 200, {"access_token": "t1", "expires_in": 300}
        return answered(method, path, body)

    monkeypatch.setattr(registry, "answer", answer)
    settings = {
        "url": registry.url,
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": registry.url + "/token",
        "bearer.auth.client.id": "me",
        "bearer.auth.client.secret": "secret",
    }
    with SchemaRegistryClient(settings) as client:
        client.get_subjects()
        client.get_subjects()

    assert [path for _, path, _ in registry.requests].count("/token") == 1
    assert registry.requests[-1][2]["Authorization"] == "Bearer t1"


def test_errors_contain_no_secrets() -> None:
    with pytest.raises(SchemaRegistryError, match="returned expires_in = 'soon': expected a number") as refused:
        read_token(Reply(200, b'{"access_token": "t0ken", "expires_in": "soon"}'), "http://idp")
    assert "t0ken" not in str(refused.value)
    with pytest.raises(ConfigError, match="url = 'host:8081': must begin with http") as wrong:
        SchemaRegistryClient({"url": "htp://amy:s3cret@host:8081"})
    assert "s3cret" not in str(wrong.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "url = None: must be the address"),
        ({"url": "localhost:8081"}, "must begin with http:// or https://"),
        ({"url": "http://x", "ssl.ca": "y"}, "unknown setting 'ssl.ca'"),
        ({"url": "http://x", "basic.auth.user.info": "amy"}, "write NAME:PASSWORD"),
        ({"url": "http://x", "max.retries": "many"}, "max.retries = 'many': must be a number"),
        ({"url": "http://x", "bearer.auth.token": "y"}, "needs bearer.auth.credentials.source"),
        ({"url": "http://x", "bearer.auth.credentials.source": "STATIC_TOKEN"}, "needs bearer.auth.token"),
        ({"url": "http://x", "ssl.key.location": "y"}, "need ssl.certificate.location"),
        ({"url": "https://x", "ssl.ca.location": "/no/file"}, "ssl.ca.location = /no/file"),
    ],
)
def test_wrong_settings_are_explained(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SchemaRegistryClient(settings)


def test_certificates_are_not_checked_if_that_is_disabled() -> None:
    from ottla.schemas.config import registry_config

    context = registry_config({"url": "https://x", "ssl.ca.location": False}).verify

    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE


def test_the_asyncio_client_does_the_same(registry: SmallRegistry) -> None:
    async def use() -> None:
        async with AsyncSchemaRegistryClient({"url": registry.url, **QUICK}) as client:
            registry.failures = [503]
            number = await client.register_schema("orders-value", Schema(TEXT))
            assert (await client.get_schema(number)).schema_str == TEXT
            with pytest.raises(SchemaRegistryError, match="40402"):
                await client.get_version("nothing", 1)

    asyncio.run(use())


def test_equal_schemas_are_equal_and_hashable() -> None:
    one = Schema(TEXT, references=[SchemaReference("a", "b", 1)], metadata={"properties": {"owner": "x"}})
    other = Schema.from_dict(one.to_dict())

    assert one == other
    assert len({one, other}) == 1
