"""Which client of a pipeline takes what of its settings of Kafka's.

One file speaks for a consumer, a producer and an admin. Each is told what it knows, and what only another knows is left out; a name
that none of them knows stays, so that it is never passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ottla.client.config.setting_owners import Face, names_of, takers, told_of
from ottla.config import unknown


@cache
def promised() -> tuple[str, ...]:
    """Kafka's names that are not there yet: the client says of each why not."""
    from ottla.client.admin import config as admin
    from ottla.client.config.common_config import COMMON_NOT_YET
    from ottla.client.producer import config as producer

    return (*COMMON_NOT_YET, *admin.NOT_YET, *producer.NOT_YET)


def meant_for(face: Face, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that this client takes, and those that nobody knows."""
    return {name: value for name, value in settings.items() if face in takers(name) or not takers(name)}


def mistake_in(name: str, face: Face | None = None) -> str | None:
    """What is wrong with a name, where it is there for this client, or for any; None where nothing is."""
    dotted = name.replace("_", ".")
    who = takers(name)
    if any(dotted == one or dotted.startswith(f"{one}.") for one in promised()) or (who and face in (None, *who)):
        return None
    told = told_of(name, face)
    return unknown("setting", name, names_of(face)) if told is None else told
