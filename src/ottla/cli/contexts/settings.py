"""Check the settings of a context: only settings that all clients have, and secrets only as references."""

from __future__ import annotations

import os
import typing
from collections.abc import Iterable
from typing import Any

from ottla.cli.options import pairs_of, properties_of, usage_error
from ottla.config import Password, unknown

REMEDY = "use a reference instead: ${env:NAME}, ${file:/path:key}, or a --command-config of its own"


def checked_settings(texts: Iterable[str]) -> dict[str, str]:
    """Return the checked `--set key=value` options of a context."""
    from ottla.client.admin.config import AdminConfig
    from ottla.client.config.synonyms import translate_names
    from ottla.config import options_of

    given = pairs_of("--set", texts)
    known = {option.name: option.type for option in options_of(AdminConfig)}
    for name, value in given.items():
        (meant,) = translate_names({name: value})
        if meant not in known:
            raise usage_error(f"{unknown('setting', name, known)}; a context has only settings that every client has")
        if meant == "bootstrap.servers":
            raise usage_error("--set bootstrap.servers: use --bootstrap-server")
        if is_secret(known[meant]) and not is_reference(value):
            raise usage_error(f"--set {name}: the file of contexts must not contain a secret: {REMEDY}")
    return given


def is_secret(kind: Any) -> bool:
    return kind is Password or Password in typing.get_args(kind)


def is_reference(value: str) -> bool:
    """Return true if the value is only a reference to a secret."""
    from ottla.client.authentication.references import REFERENCE

    return REFERENCE.fullmatch(value) is not None


def checked_address(text: str) -> str:
    """Return the checked addresses of a context, without spaces."""
    from ottla.client.network.bootstrap import LOGIN, parse_address
    from ottla.config import refuse_credentials
    from ottla.errors import ConfigError

    servers = [each.strip() for each in text.split(",") if each.strip()]
    if not servers:
        raise usage_error("--bootstrap-server is empty: expected HOST:PORT")
    try:
        refuse_credentials("bootstrap.servers", servers, LOGIN)
        for each in servers:
            if not is_reference(each):
                parse_address(each.rpartition("://")[2])
    except ConfigError as error:
        raise usage_error(str(error)) from None
    return ",".join(servers)


def checked_file(place: str | None) -> str | None:
    """Return the absolute path of a readable properties file."""
    if place is None:
        return None
    whole = os.path.abspath(os.path.expanduser(place))
    properties_of("--command-config", whole)
    return whole
