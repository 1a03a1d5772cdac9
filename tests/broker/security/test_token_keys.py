"""Keys of tokens by HTTPS: fetched from the one endpoint that is named, again when one is not known, and from nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import KeySet, RSAKey

from ottla import Admin
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.security import token_keys
from ottla.errors import AuthenticationError
from tests.broker.security.secured import KEY, LISTENERS, Secured, lasting, settings_of
from tests.certificates import Authority
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider
from tests.patience import eventually

OTHER: Any = RSAKey.generate_key(2048, {"kid": "three"})


def public(*keys: Any) -> dict[str, Any]:
    return dict(KeySet(list(keys)).as_dict(private=False))


@pytest.fixture
def provider(authority: Authority) -> Iterator[IdentityProvider]:
    with identity_provider(authority.server_context(), lasting, public(KEY)) as running:
        yield running


@contextmanager
def start_broker(provider: IdentityProvider, authority: Authority, folder: Path) -> Iterator[Secured]:
    settings = settings_of(authority, folder)
    del settings["sasl_oauthbearer_jwks_file"]
    settings |= {"sasl_oauthbearer_jwks_endpoint_url": provider.keys_url, "https_ca_location": authority.file}
    with Broker(listen=LISTENERS, **settings) as broker:
        yield Secured(broker, authority, folder)


def by_credentials(secured: Secured, provider: IdentityProvider) -> dict[str, Any]:
    return secured.at(
        "SASL_SSL",
        **{
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "https.ca.location": secured.authority.file,
        },
    )


def describe_cluster(settings: dict[str, Any]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def test_a_client_with_an_id_and_a_secret_logs_in_with_tokens_verified_by_the_providers_keys(
    provider: IdentityProvider, authority: Authority, tmp_path: Path
) -> None:
    with start_broker(provider, authority, tmp_path) as secured:
        describe_cluster(by_credentials(secured, provider))
    assert set(provider.asked) == {"/keys", "/token"}


def test_an_unknown_key_is_fetched_while_the_login_waits(
    provider: IdentityProvider, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_keys, "AGAIN_SECONDS", 0.0)
    with start_broker(provider, authority, tmp_path) as secured:
        describe_cluster(by_credentials(secured, provider))
        provider.keys, provider.make_token = public(OTHER), lambda seconds: lasting(seconds, OTHER)
        describe_cluster(by_credentials(secured, provider))
        provider.make_token = lasting
        with pytest.raises(AuthenticationError):
            describe_cluster(by_credentials(secured, provider))


@pytest.mark.parametrize("inside", ["file:///etc/passwd", "/internal", "http://127.0.0.1:1/internal"])
def test_cve_2025_27817_redirects_are_not_followed(
    provider: IdentityProvider,
    authority: Authority,
    tmp_path: Path,
    inside: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider.redirected_to = inside
    with caplog.at_level(logging.WARNING), start_broker(provider, authority, tmp_path) as secured:
        eventually(lambda: any("cannot fetch the token keys" in line and "302" in line for line in caplog.messages))
        with pytest.raises(AuthenticationError):
            describe_cluster(by_credentials(secured, provider))
    assert "/internal" not in provider.asked


def test_an_endpoint_with_an_untrusted_certificate_provides_no_keys(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder := tmp_path / "other").mkdir()
    with (
        identity_provider(Authority(folder).server_context(), lasting, public(KEY)) as stranger,
        caplog.at_level(logging.WARNING),
        start_broker(stranger, authority, tmp_path),
    ):
        eventually(lambda: any("certificate verify failed" in line for line in caplog.messages))
    assert stranger.asked == []
