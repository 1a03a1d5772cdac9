"""Addresses of MySQL: `mysql://user:password@host:3306/name`. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ottla.config import unknown
from ottla.errors import ConfigError

PORT = 3306
OPTIONS = ("ssl_ca", "ssl_cert", "ssl_key", "unix_socket")
"""What may follow a `?`, by PyMySQL's names."""


def address_of(url: str) -> dict[str, Any]:
    """How PyMySQL is told where to go; ConfigError, without the address, which may have a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"url: {error}; write such as mysql://user@host:3306/name") from None
    name = unquote(parts.path.removeprefix("/"))
    if not host or not name or "/" in name:
        raise ConfigError("url names no host and database; write such as mysql://user@host/name")
    options = dict(parse_qsl(parts.query))
    for one in options:
        if one not in OPTIONS:
            raise ConfigError(f"url: {unknown('option of MySQL', one, OPTIONS)}")
    return {
        "host": host,
        "port": port or PORT,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": name,
        **options,
    }
