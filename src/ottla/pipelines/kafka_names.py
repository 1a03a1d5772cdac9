"""Addresses of brokers and names of topics, looked at when the file is read: nobody need be asked to refuse what can be none.

What has a placeholder in it is not known yet, and passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.errors import ConfigError
from ottla.spark.sink.refusals import LEGAL_TOPIC

PLACEHOLDER = "${"


def checked_servers(text: str | None) -> str | None:
    """The addresses; ValueError for one that is none."""
    if text is not None and PLACEHOLDER not in text:
        try:
            bootstrap_nodes(one.rpartition("://")[2] for one in text.split(",") if one.strip())
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("bootstrap.servers ").removeprefix("= ")) from None
    return text


def check_topics(names: Iterable[str]) -> None:
    """ValueError where one is no name."""
    for name in names:
        if PLACEHOLDER not in name and not LEGAL_TOPIC.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a topic, which has letters, digits, dots, dashes and underscores, 249 at most"
            )
