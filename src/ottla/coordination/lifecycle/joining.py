"""Which features a broker says it can run, and whether a cluster runs others."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.cluster.features import OF_A_BROKER, Levels

MEANINGS = {"share.version": "share groups", "streams.version": "groups of Kafka Streams"}


def refusal(finalized: Mapping[str, int]) -> str | None:
    """Why a cluster that runs these levels cannot be joined, and what helps; None where it can."""
    beyond = {
        name: level for name, level in sorted(finalized.items()) if level and not within(OF_A_BROKER.get(name), level)
    }
    if not beyond:
        return None
    runs = " and ".join(f"{name} {level}{meaning(name)}" for name, level in beyond.items())
    options = " ".join(f"--feature {name}={last(name)}" for name in beyond)
    return (
        f"the cluster runs {runs}, which this broker does not have, so it cannot be one of its brokers: where that is not "
        f"needed, lower it with `kafka-features --bootstrap-server HOST:PORT downgrade {options}` and start again"
    )


def within(levels: Levels | None, level: int) -> bool:
    return levels is not None and levels.first <= level <= levels.last


def meaning(name: str) -> str:
    return f" ({MEANINGS[name]})" if name in MEANINGS else ""


def last(name: str) -> int:
    """The highest level that can be run here."""
    levels = OF_A_BROKER.get(name)
    return levels.last if levels is not None else 0
