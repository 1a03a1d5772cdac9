"""The levels of features that a cluster is to begin with, as who formats its directories wants them. Pure.

A level counts in this order: where it is wished for by name, where a release of Kafka has it, where a new cluster of ours does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.coordination.cluster.features import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEEDS,
    OF_A_BROKER,
    OF_SEVERAL,
    TRANSACTION_VERSION,
    Levels,
)
from ottla.coordination.cluster.records import FeatureLevelRecord
from ottla.errors import ConfigError
from ottla.protocol.schema import Message

RELEASES: Mapping[str, int] = {"3.7": 19, "3.8": 20, "3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30}
"""Releases of Kafka that can read what controllers of ours write, with the metadata.version of each."""
STEPS: Mapping[str, int] = {
    "3.7-IV4": 19, "3.8-IV0": 20, "3.9-IV0": 21, "4.0-IV0": 22, "4.0-IV1": 23, "4.0-IV2": 24,
    "4.0-IV3": 25, "4.1-IV0": 26, "4.1-IV1": 27, "4.2-IV0": 28, "4.2-IV1": 29, "4.3-IV0": 30,
}  # fmt: skip
"""Every metadata.version of theirs by Kafka's name of it: those between two releases are named as well."""
COMES_WITH: Mapping[str, tuple[int, int]] = {GROUP_VERSION: (22, 1), TRANSACTION_VERSION: (24, 2), ELR_VERSION: (26, 1)}
"""From which metadata.version on Kafka gives a new cluster a feature, and at which level."""
POSSIBLE: Mapping[str, Levels] = {
    **OF_A_BROKER,
    METADATA_VERSION: Levels(min(RELEASES.values()), max(RELEASES.values())),
    "share.version": Levels(0, 0),
    "streams.version": Levels(0, 0),
}
"""What can be wished for; who formats nodes of Kafka's with the same line switches off there what nodes of ours do not have."""


def first_levels(release: str | None, wishes: Mapping[str, int], *, fixed_voters: bool) -> dict[str, int]:
    """What a cluster begins with; ConfigError where it cannot be. Without a level is what is at 0."""
    check(wishes, fixed_voters=fixed_voters)
    if release is not None and METADATA_VERSION in wishes:
        raise ConfigError(
            f"--release-version {release} says the level of {METADATA_VERSION} already: leave one of them out"
        )
    if release is not None:
        levels = levels_of(metadata_version_of(release))
    elif METADATA_VERSION in wishes:
        levels = levels_of(wishes[METADATA_VERSION])
    else:
        levels = dict(OF_SEVERAL)
    levels |= {name: level for name, level in wishes.items() if name != KRAFT_VERSION}
    for name, needed in NEEDS.items():
        if levels.get(name, 0) and levels[METADATA_VERSION] < needed:
            raise ConfigError(
                f"--feature {name}={levels[name]} needs {METADATA_VERSION} {needed}, and it is {levels[METADATA_VERSION]}: "
                "leave it out, or choose a later release"
            )
    return {name: level for name, level in levels.items() if level}


def check(wishes: Mapping[str, int], *, fixed_voters: bool) -> None:
    """Refuse a feature that is not known, and a level that it does not have."""
    for name, level in wishes.items():
        possible = POSSIBLE.get(name)
        if possible is None:
            raise ConfigError(f"--feature {name}: there is no such feature; there are {', '.join(sorted(POSSIBLE))}")
        if not possible.first <= level <= possible.last:
            only = str(possible.last) if possible.first == possible.last else f"{possible.first} to {possible.last}"
            raise ConfigError(f"--feature {name}={level}: its level can be {only} here")
    kraft = wishes.get(KRAFT_VERSION)
    if kraft is not None and kraft != (not fixed_voters):
        how = "controller.quorum.voters says who votes" if fixed_voters else "the log says who votes"
        raise ConfigError(f"--feature {KRAFT_VERSION}={kraft}: it is {int(not fixed_voters)} where {how}; leave it out")


def levels_of(metadata_version: int) -> dict[str, int]:
    """What a new cluster of Kafka's has at a metadata.version, of what nodes of ours have."""
    others = {name: level for name, (since, level) in COMES_WITH.items() if metadata_version >= since}
    return {METADATA_VERSION: metadata_version, **others}


def metadata_version_of(release: str) -> int:
    """That of a release, of which `4.3` is said, or `4.3.1`, or `4.3-IV0`."""
    if release in STEPS:
        return STEPS[release]
    name = ".".join(release.split(".")[:2])
    if name not in RELEASES or not all(part.isdecimal() for part in release.split(".")):
        raise ConfigError(
            f"--release-version {release!r} is none of {', '.join(RELEASES)}, nor of {min(STEPS)} to {max(STEPS)}"
        )
    return RELEASES[name]


def level_records(levels: Mapping[str, int]) -> Sequence[Message]:
    """As Kafka writes them: its own version first, the others by name."""
    others = sorted(name for name in levels if name != METADATA_VERSION)
    return [FeatureLevelRecord(name, levels[name]) for name in (METADATA_VERSION, *others)]
