"""`ottla cluster features`: show and change the levels of the cluster's features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import bootstrap_server, json_option, level_of, pairs_of, settings_option, usage_error
from ottla.cli.tables import show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import FeatureMetadata, FeatureUpdate

COLUMNS = ("FEATURE", "SUPPORTED-MIN", "SUPPORTED-MAX", "FINALIZED", "EPOCH")


@click.command()
@click.option(
    "--upgrade",
    "raised",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Raise the level of a feature; may be repeated.",
)
@click.option(
    "--downgrade",
    "lowered",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Lower the level of a feature if no metadata is lost; 0 disables it.",
)
@bootstrap_server
@json_option
@settings_option("client")
def features(
    raised: tuple[str, ...], lowered: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]
) -> None:
    """Print the finalized level of each feature and the levels that the contacted broker supports.

    With --upgrade or --downgrade first change levels; either all of them change or none. Levels are numbers, also
    for metadata.version: 33 is Kafka's 4.4-IV2.
    """
    wanted = updates_of(raised, lowered)
    with admin_at(bootstrap_server, settings) as admin:
        if wanted:
            admin.update_features(wanted)
        found = admin.describe_features()
    show(COLUMNS, rows_of(found), in_json=in_json)


def updates_of(raised: tuple[str, ...], lowered: tuple[str, ...]) -> dict[str, FeatureUpdate]:
    from ottla.client.admin import FeatureUpdate

    up, down = pairs_of("--upgrade", raised), pairs_of("--downgrade", lowered)
    for name in up.keys() & down.keys():
        raise usage_error(f"{name} has both --upgrade and --downgrade: give only one of them")
    wishes = {name: FeatureUpdate(level_of("--upgrade", name, text)) for name, text in up.items()}
    lower = {name: FeatureUpdate(level_of("--downgrade", name, text), "SAFE_DOWNGRADE") for name, text in down.items()}
    return wishes | lower


def rows_of(found: FeatureMetadata) -> list[tuple[Any, ...]]:
    """Return one row per known feature; a feature that the cluster does not use has level 0."""
    rows: list[tuple[Any, ...]] = []
    for name in sorted({*found.supported_features, *found.finalized_features}):
        supported, finalized = found.supported_features.get(name), found.finalized_features.get(name)
        bounds = (None, None) if supported is None else (supported.min_version, supported.max_version)
        level = 0 if finalized is None else finalized.max_version_level
        rows.append((name, *bounds, level, found.finalized_features_epoch))
    return rows
