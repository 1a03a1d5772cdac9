"""The clients that have a setting: all share most, and each has some of its own.

Used for the error for an unknown setting, and by pipelines, with settings for all three clients.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ottla.client.config.synonyms import RENAMED, UNDERSTOOD, find_remedy
from ottla.client.config.typed_settings import AdminSettings, ConsumerSettings, ProducerSettings, ShareConsumerSettings

ClientKind = Literal["admin", "consumer", "producer", "share consumer"]
KINDS: tuple[ClientKind, ...] = ("admin", "consumer", "producer")
"""The clients of pipelines."""
SETTINGS: dict[ClientKind, type] = {
    "admin": AdminSettings,
    "consumer": ConsumerSettings,
    "producer": ProducerSettings,
    "share consumer": ShareConsumerSettings,
}
"""The typed settings have the same names as the config classes (a test compares them), and import nothing."""


@cache
def setting_names(kind: ClientKind | None) -> frozenset[str]:
    """Return the dotted names of the settings of one kind of client, or of all."""
    kinds = KINDS if kind is None else (kind,)
    fields = (field for each in kinds for field in SETTINGS[each].__optional_keys__)  # type: ignore[attr-defined]
    return frozenset(field.replace("_", ".") for field in fields)


def find_owners(name: str) -> list[ClientKind]:
    """Return the clients that have a setting, under Kafka's name or librdkafka's."""
    dotted = name.replace("_", ".")
    known = UNDERSTOOD.get(dotted, dotted)
    owners = [kind for kind in KINDS if known in setting_names(kind)]
    return owners or (["share consumer"] if known in setting_names("share consumer") else [])


def explain_other_owner(name: str, kind: ClientKind) -> str | None:
    """Return the error text if only other clients have the setting, under any library's name; otherwise None."""
    dotted = name.replace("_", ".")
    owners = find_owners(RENAMED.get(dotted, dotted))
    if not owners or kind in owners:
        return None
    return f"{name} is for {' or '.join(map(with_article, owners))}, and this is {with_article(kind)}; leave it out"


def explain_unknown(name: str, kind: ClientKind | None) -> str | None:
    """Return the error text for a setting that this kind of client, or any, does not have.

    Another client has it, or it has another name in Ottla; None if the name is not known at all.
    """
    if kind is not None and (text := explain_other_owner(name, kind)) is not None:
        return text
    better = find_remedy(name, setting_names(kind))
    return None if better is None else f"unknown setting {name!r}: {better}"


def with_article(kind: ClientKind) -> str:
    """Return the kind with its article, such as `an admin` or `a consumer`."""
    return f"an {kind}" if kind == "admin" else f"a {kind}"
