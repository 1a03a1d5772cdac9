"""What a context may keep: settings that every client has, and of secrets only where they are."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.cli.options import pairs_of, properties_of, senseless
from ottla.config import Password, unknown

REMEDY = "write where it is instead: ${env:NAME}, ${file:/path:key}, or a --command-config of its own"


def checked_settings(texts: Iterable[str]) -> dict[str, str]:
    """`--set key=value` of a context."""
    from ottla.client.admin.config import AdminConfig
    from ottla.client.config.synonyms import understood
    from ottla.config import options_of

    given = pairs_of("--set", texts)
    known = {option.name: option.type for option in options_of(AdminConfig)}
    for name, value in given.items():
        (meant,) = understood({name: value})
        if meant not in known:
            raise senseless(f"{unknown('setting', name, known)}; a context has those that every client has")
        if meant == "bootstrap.servers":
            raise senseless("--set bootstrap.servers: say where the cluster is with --bootstrap-server")
        if is_secret(known[meant]) and not is_reference(value):
            raise senseless(f"--set {name}: a secret does not belong into the file of contexts; {REMEDY}")
    return given


def is_secret(kind: Any) -> bool:
    return kind is Password or Password in typing.get_args(kind)


def is_reference(value: str) -> bool:
    """Whether it says where a value is, and nothing of the value."""
    from ottla.client.authentication.references import REFERENCE

    return REFERENCE.fullmatch(value) is not None


def checked_address(text: str) -> str:
    """`--bootstrap-server` of a context, unless it is kept elsewhere."""
    from ottla.client.network.bootstrap import LOGIN, parse_address
    from ottla.config import refuse_credentials
    from ottla.errors import ConfigError

    servers = [each.strip() for each in text.split(",") if each.strip()]
    if not servers:
        raise senseless("--bootstrap-server is empty: write HOST:PORT")
    try:
        refuse_credentials("bootstrap.servers", servers, LOGIN)
        for each in servers:
            if not is_reference(each):
                parse_address(each.rpartition("://")[2])
    except ConfigError as error:
        raise senseless(str(error)) from None
    return ",".join(servers)


def checked_file(place: str | None) -> str | None:
    """The whole path of a properties file that can be read."""
    if place is None:
        return None
    whole = str(Path(place).expanduser().absolute())
    properties_of("--command-config", whole)
    return whole
