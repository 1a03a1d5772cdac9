"""The feature levels of a new cluster, from the options of the `format` command (KIP-584, KIP-1022). Pure.

The level of a feature is the first of these that is given: `--feature NAME=LEVEL`, the level that new clusters of the
Kafka release in `--release-version` have, the level of a new cluster of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.coordination.cluster.features import (
    BROKER_LEVELS,
    ELR_VERSION,
    GROUP_VERSION,
    INITIAL_CLUSTER_LEVELS,
    KRAFT_VERSION,
    METADATA_VERSION,
    REQUIRED_METADATA_VERSIONS,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    Levels,
)
from ottla.coordination.cluster.records import FeatureLevelRecord
from ottla.errors import ConfigError
from ottla.protocol.schema import Message

RELEASES: Mapping[str, int] = {"3.7": 19, "3.8": 20, "3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30, "4.4": 33}
"""Kafka release → its metadata.version, for the releases that can read the records of our controllers."""
METADATA_VERSIONS: Mapping[str, int] = {
    "3.7-IV4": 19, "3.8-IV0": 20, "3.9-IV0": 21, "4.0-IV0": 22, "4.0-IV1": 23, "4.0-IV2": 24,
    "4.0-IV3": 25, "4.1-IV0": 26, "4.1-IV1": 27, "4.2-IV0": 28, "4.2-IV1": 29, "4.3-IV0": 30,
    "4.4-IV0": 31, "4.4-IV1": 32, "4.4-IV2": 33,
}  # fmt: skip
"""Kafka's names of the metadata.versions, with those between two releases → the level."""
INTRODUCED: Sequence[tuple[str, int, int]] = (
    (GROUP_VERSION, 22, 1),
    (TRANSACTION_VERSION, 24, 2),
    (ELR_VERSION, 26, 1),
    (SHARE_VERSION, 28, 1),
    (STREAMS_VERSION, 29, 1),
    (SHARE_VERSION, 31, 2),
)
"""Features that Kafka gives to a new cluster: the first metadata.version with a level, and the level, ascending."""
ACCEPTED_LEVELS: Mapping[str, Levels] = {
    **BROKER_LEVELS,
    METADATA_VERSION: Levels(min(RELEASES.values()), max(RELEASES.values())),
}
"""The levels that `--feature` accepts.

Features that exist only in Kafka can be set to 0, so that one command line formats nodes of both kinds.
"""


def choose_initial_levels(release: str | None, requested: Mapping[str, int], *, fixed_voters: bool) -> dict[str, int]:
    """Return the levels of a new cluster; features at level 0 are left out.

    Raise ConfigError if the levels are impossible.
    """
    check_levels(requested, fixed_voters=fixed_voters)
    if release is not None and METADATA_VERSION in requested:
        raise ConfigError(
            f"--release-version {release} sets the level of {METADATA_VERSION} already: leave one of them out"
        )
    if release is not None:
        levels = list_release_levels(find_metadata_version(release))
    elif METADATA_VERSION in requested:
        levels = list_release_levels(requested[METADATA_VERSION])
    else:
        levels = dict(INITIAL_CLUSTER_LEVELS)
    levels |= {name: level for name, level in requested.items() if name != KRAFT_VERSION}
    for name, needed in REQUIRED_METADATA_VERSIONS.items():
        if levels.get(name, 0) and levels[METADATA_VERSION] < needed:
            raise ConfigError(
                f"--feature {name}={levels[name]} needs {METADATA_VERSION} {needed}, and it is {levels[METADATA_VERSION]}: "
                "leave it out, or choose a later release"
            )
    return {name: level for name, level in levels.items() if level}


def check_levels(requested: Mapping[str, int], *, fixed_voters: bool) -> None:
    """Raise ConfigError for an unknown feature or a level that it does not have."""
    for name, level in requested.items():
        possible = ACCEPTED_LEVELS.get(name)
        if possible is None:
            raise ConfigError(
                f"--feature {name}: there is no such feature; there are {', '.join(sorted(ACCEPTED_LEVELS))}"
            )
        if not possible.first <= level <= possible.last:
            only = str(possible.last) if possible.first == possible.last else f"{possible.first} to {possible.last}"
            raise ConfigError(f"--feature {name}={level}: its level can be {only} here")
    kraft = requested.get(KRAFT_VERSION)
    if kraft is not None and kraft != (not fixed_voters):
        how = "controller.quorum.voters lists the voters" if fixed_voters else "the log has the voters"
        raise ConfigError(f"--feature {KRAFT_VERSION}={kraft}: it is {int(not fixed_voters)} where {how}; leave it out")


def list_release_levels(metadata_version: int) -> dict[str, int]:
    """Return the levels of a new Kafka cluster at this metadata.version, for the features that are supported here."""
    others = {name: level for name, since, level in INTRODUCED if metadata_version >= since}
    return {METADATA_VERSION: metadata_version, **others}


def find_metadata_version(release: str) -> int:
    """Return the metadata.version of a release name such as `4.4`, `4.4.0` or `4.4-IV2`."""
    if release in METADATA_VERSIONS:
        return METADATA_VERSIONS[release]
    name = ".".join(release.split(".")[:2])
    if name not in RELEASES or not all(part.isdecimal() for part in release.split(".")):
        raise ConfigError(
            f"--release-version {release!r} is none of {', '.join(RELEASES)}, nor of {min(METADATA_VERSIONS)} to {max(METADATA_VERSIONS)}"
        )
    return RELEASES[name]


def build_level_records(levels: Mapping[str, int]) -> Sequence[Message]:
    """Return the records of the levels in Kafka's order: metadata.version first, the others by name."""
    others = sorted(name for name in levels if name != METADATA_VERSION)
    return [FeatureLevelRecord(name, levels[name]) for name in (METADATA_VERSION, *others)]
