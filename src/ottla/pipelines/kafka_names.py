"""Checks of broker addresses and topic names when the pipeline file is read, without a request to a broker.

A text with a placeholder is not known yet and passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.errors import ConfigError
from ottla.spark.sink.refusals import LEGAL_TOPIC

PLACEHOLDER = "${"


def checked_servers(text: str | None) -> str | None:
    """Return the broker addresses; ValueError for an invalid one."""
    if text is not None and PLACEHOLDER not in text:
        try:
            bootstrap_nodes(one.rpartition("://")[2] for one in text.split(",") if one.strip())
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("bootstrap.servers ").removeprefix("= ")) from None
    return text


def checked_topic(name: str | None) -> str | None:
    """Return the topic name; ValueError for an invalid one."""
    check_topics([] if name is None else [name])
    return name


def check_topics(names: Iterable[str]) -> None:
    """Raise ValueError for an invalid topic name."""
    for name in names:
        if PLACEHOLDER not in name and not LEGAL_TOPIC.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid topic name: use letters, digits, dots, dashes and underscores, at most 249"
            )
