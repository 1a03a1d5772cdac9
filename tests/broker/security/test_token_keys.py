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
from ottla.broker.authentication import token_keys
from ottla.broker.embedded import Broker
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
def broker_asking(provider: IdentityProvider, authority: Authority, folder: Path) -> Iterator[Secured]:
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


def ask(settings: dict[str, Any]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def test_a_client_with_an_id_and_a_secret_comes_in_by_tokens_that_the_broker_checks_with_the_providers_keys(
    provider: IdentityProvider, authority: Authority, tmp_path: Path
) -> None:
    with broker_asking(provider, authority, tmp_path) as secured:
        ask(by_credentials(secured, provider))
    assert set(provider.asked) == {"/keys", "/token"}


def test_a_key_that_is_not_known_is_asked_for_and_the_login_waits(
    provider: IdentityProvider, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_keys, "AGAIN_SECONDS", 0.0)
    with broker_asking(provider, authority, tmp_path) as secured:
        ask(by_credentials(secured, provider))
        provider.keys, provider.make_token = public(OTHER), lambda seconds: lasting(seconds, OTHER)
        ask(by_credentials(secured, provider))
        provider.make_token = lasting
        with pytest.raises(AuthenticationError):
            ask(by_credentials(secured, provider))


@pytest.mark.parametrize("inside", ["file:///etc/passwd", "/internal", "http://127.0.0.1:1/internal"])
def test_cve_2025_27817_no_redirect_is_followed_wherever_it_leads(
    provider: IdentityProvider,
    authority: Authority,
    tmp_path: Path,
    inside: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider.redirected_to = inside
    with caplog.at_level(logging.WARNING), broker_asking(provider, authority, tmp_path) as secured:
        eventually(lambda: any("could not be fetched" in line and "302" in line for line in caplog.messages))
        with pytest.raises(AuthenticationError):
            ask(by_credentials(secured, provider))
    assert "/internal" not in provider.asked


def test_an_endpoint_whose_certificate_is_not_trusted_gives_no_keys(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder := tmp_path / "other").mkdir()
    with (
        identity_provider(Authority(folder).server_context(), lasting, public(KEY)) as stranger,
        caplog.at_level(logging.WARNING),
        broker_asking(stranger, authority, tmp_path),
    ):
        eventually(lambda: any("certificate verify failed" in line for line in caplog.messages))
    assert stranger.asked == []
