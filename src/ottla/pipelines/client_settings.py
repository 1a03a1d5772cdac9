"""Distributes a pipeline's Kafka settings to its clients.

One file has settings for a consumer, a producer and an admin. Each client gets those that it has; settings of other clients are
left out. A name that no client has is passed to all, so that it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ottla.client.config.setting_owners import ClientKind, explain_unknown, find_owners, setting_names
from ottla.config import unknown


@cache
def unsupported_names() -> tuple[str, ...]:
    """Return Kafka's names that Ottla does not support yet; a client gives the reason for each."""
    from ottla.client.admin import config as admin
    from ottla.client.config.common_config import COMMON_NOT_YET
    from ottla.client.producer import config as producer

    return (*COMMON_NOT_YET, *admin.NOT_YET, *producer.NOT_YET)


def settings_for(face: ClientKind, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that this client has, and those that no client has."""
    return {name: value for name, value in settings.items() if face in find_owners(name) or not find_owners(name)}


def find_mistake(name: str, face: ClientKind | None = None) -> str | None:
    """Return the error text for the name of a setting of this client, or of any; None if the name is right."""
    dotted = name.replace("_", ".")
    owners = find_owners(name)
    if any(dotted == one or dotted.startswith(f"{one}.") for one in unsupported_names()) or (
        owners and face in (None, *owners)
    ):
        return None
    text = explain_unknown(name, face)
    return unknown("setting", name, setting_names(face)) if text is None else text
