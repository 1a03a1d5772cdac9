"""The settings of a registry client, by Confluent's names."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from msgspec import Struct

from ottla.errors import ConfigError

Provider = Callable[[Mapping[str, Any]], Mapping[str, Any]]
BEARER_SOURCES = ("STATIC_TOKEN", "OAUTHBEARER", "CUSTOM")
BASIC_SOURCES = ("USER_INFO", "URL")
NAMES = frozenset(
    [
        "url",
        "proxy",
        "timeout",
        "max.retries",
        "retries.wait.ms",
        "retries.max.wait.ms",
        "cache.capacity",
        "cache.latest.ttl.sec",
        "basic.auth.user.info",
        "basic.auth.credentials.source",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "bearer.auth.credentials.source",
        "bearer.auth.token",
        "bearer.auth.logical.cluster",
        "bearer.auth.identity.pool.id",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
        "bearer.auth.scope",
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.custom.provider.function",
        "bearer.auth.custom.provider.config",
    ]
)


class OAuthClient(Struct, frozen=True):
    """A client of an OAuth server, for tokens by client credentials (RFC 6749, 4.4)."""

    endpoint: str
    client_id: str
    client_secret: str
    scope: str


class RegistryConfig(Struct, frozen=True):
    """The checked settings."""

    urls: tuple[str, ...]
    user: tuple[str, str] | None
    token: str | None
    oauth: OAuthClient | None
    token_function: Callable[[], Mapping[str, Any]] | None
    headers: Mapping[str, str]
    """Headers of each request."""
    verify: ssl.SSLContext | None
    proxy: str | None
    timeout_s: float | None
    max_retries: int
    retries_wait_ms: int
    retries_max_wait_ms: int
    cache_capacity: int
    cache_latest_ttl_s: float | None


def registry_config(conf: Mapping[str, Any] | str) -> RegistryConfig:
    """Return the checked settings; a text is the `url`. Raises ConfigError."""
    given: dict[str, Any] = {"url": conf} if isinstance(conf, str) else dict(conf)
    unknown = sorted(set(given) - NAMES)
    if unknown:
        raise ConfigError(
            f"unknown setting {unknown[0]!r} of a schema registry; the settings are {', '.join(sorted(NAMES))}"
        )
    urls, in_url = split_urls(given.get("url"))
    token, oauth, function, headers = bearer_settings(given)
    user = basic_user(given, in_url)
    if user is not None and (token or oauth or function):
        raise ConfigError("both basic.auth and bearer.auth settings are given; keep one of them")
    return RegistryConfig(
        urls,
        user,
        token,
        oauth,
        function,
        headers,
        tls_context(given, urls),
        given.get("proxy"),
        None if given.get("timeout") is None else checked_number(given, "timeout", 0),
        int(checked_number(given, "max.retries", 3)),
        int(checked_number(given, "retries.wait.ms", 1000)),
        int(checked_number(given, "retries.max.wait.ms", 20000)),
        int(checked_number(given, "cache.capacity", 1000)),
        None if given.get("cache.latest.ttl.sec") is None else checked_number(given, "cache.latest.ttl.sec", 0),
    )


def split_urls(text: Any) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the addresses without credentials, and the credentials of the first."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"url = {text!r}: must be the address of the schema registry, such as http://localhost:8081")
    urls: list[str] = []
    user: tuple[str, str] | None = None
    for one in text.split(","):
        url = one.strip().rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = one.strip().rpartition("@")[2]  # in front of it may be a password
            raise ConfigError(f"url = {shown!r}: must begin with http:// or https://, such as http://localhost:8081")
        if parts.username is not None:
            user = user or (unquote(parts.username), unquote(parts.password or ""))
            url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))
        urls.append(url)
    return tuple(urls), user


def basic_user(given: Mapping[str, Any], in_url: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return user name and password."""
    source = given.get("basic.auth.credentials.source")
    if source is not None and str(source).upper() not in BASIC_SOURCES:
        raise ConfigError(f"basic.auth.credentials.source = {source!r}: must be one of {', '.join(BASIC_SOURCES)}")
    info = given.get("basic.auth.user.info")
    if info is None:
        if source is not None and str(source).upper() == "USER_INFO":
            raise ConfigError("basic.auth.credentials.source = USER_INFO needs basic.auth.user.info = NAME:PASSWORD")
        return in_url
    if in_url is not None:
        raise ConfigError("user and password are in the url and in basic.auth.user.info; remove one of them")
    name, colon, password = str(info).partition(":")
    if not colon:
        raise ConfigError("basic.auth.user.info has no colon; write NAME:PASSWORD")
    return name, password


def bearer_settings(
    given: Mapping[str, Any],
) -> tuple[str | None, OAuthClient | None, Callable[[], Mapping[str, Any]] | None, dict[str, str]]:
    """Return how a token is got, and the headers that accompany it."""
    source = given.get("bearer.auth.credentials.source")
    if source is None:
        stray = sorted(name for name in given if name.startswith("bearer.auth."))
        if stray:
            raise ConfigError(f"{stray[0]} needs bearer.auth.credentials.source: one of {', '.join(BEARER_SOURCES)}")
        return None, None, None, {}
    headers = {
        header: str(given[name])
        for name, header in (
            ("bearer.auth.logical.cluster", "target-sr-cluster"),
            ("bearer.auth.identity.pool.id", "Confluent-Identity-Pool-Id"),
        )
        if given.get(name) is not None
    }
    match str(source).upper():
        case "STATIC_TOKEN":
            return required(given, "bearer.auth.token"), None, None, headers
        case "OAUTHBEARER":
            client = OAuthClient(
                required(given, "bearer.auth.issuer.endpoint.url"),
                required(given, "bearer.auth.client.id"),
                required(given, "bearer.auth.client.secret"),
                str(given.get("bearer.auth.scope") or ""),
            )
            return None, client, None, headers
        case "CUSTOM":
            function: Provider = given.get("bearer.auth.custom.provider.function")  # type: ignore[assignment]
            if not callable(function):
                raise ConfigError("bearer.auth.credentials.source = CUSTOM needs bearer.auth.custom.provider.function")
            details = given.get("bearer.auth.custom.provider.config") or {}
            return None, None, lambda: function(details), headers
    raise ConfigError(f"bearer.auth.credentials.source = {source!r}: must be one of {', '.join(BEARER_SOURCES)}")


def required(given: Mapping[str, Any], name: str) -> str:
    """Return a setting that bearer authentication needs."""
    value = given.get(name)
    if not value:
        raise ConfigError(f"bearer.auth.credentials.source = {given['bearer.auth.credentials.source']} needs {name}")
    return str(value)


def checked_number(given: Mapping[str, Any], name: str, default: float) -> float:
    """Return a number of at least 0; it may be given as text."""
    value = given.get(name)
    if value is None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < float("inf"):
        raise ConfigError(f"{name} = {value!r}: must be a number of at least 0")
    return number


def tls_context(given: Mapping[str, Any], urls: tuple[str, ...]) -> ssl.SSLContext | None:
    """Return the certificates to use; None without TLS."""
    authority, certificate, key = (given.get(f"ssl.{name}.location") for name in ("ca", "certificate", "key"))
    if certificate is None and (key is not None or given.get("ssl.key.password") is not None):
        raise ConfigError("ssl.key.location and ssl.key.password need ssl.certificate.location")
    if not any(url.startswith("https") for url in urls):
        return None
    try:
        if authority is False:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif authority is None:
            context = ssl.create_default_context()
        else:
            where = {"capath" if Path(authority).is_dir() else "cafile": str(authority)}
            context = ssl.create_default_context(**where)  # type: ignore[arg-type]
        if certificate is not None:
            context.load_cert_chain(str(certificate), None if key is None else str(key), given.get("ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(f"{name} = {given[name]}" for name in sorted(given) if name.endswith(".location"))
        raise ConfigError(
            f"certificates cannot be loaded ({names}): {error.strerror or error}; check the files"
        ) from None
    return context
