"""`ottla cluster features`: which features the cluster runs at which level, and which it could; and at which it shall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import bootstrap_server, json_option, level_of, pairs_of, senseless, settings_option
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
    help="Run a feature at a higher level; may be given several times.",
)
@click.option(
    "--downgrade",
    "lowered",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Run one at a lower level, where nothing is lost by it; 0 is without it.",
)
@bootstrap_server
@json_option
@settings_option("client")
def features(
    raised: tuple[str, ...], lowered: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]
) -> None:
    """Print the level at which the cluster runs each feature, and those that the broker which is asked could run.

    With --upgrade or --downgrade first change levels. Those of supported features are changed all or none. Levels are numbers, also that of metadata.version: 30 is
    Kafka's 4.3-IV0.
    """
    wanted = updates_of(raised, lowered)
    with admin_at(bootstrap_server, settings) as admin:
        if wanted:
            admin.update_features(wanted)
        found = admin.describe_features()
    show(COLUMNS, rows_of(found), in_json=in_json)


def updates_of(raised: tuple[str, ...], lowered: tuple[str, ...]) -> dict[str, FeatureUpdate]:
    """The levels that are wished for."""
    from ottla.client.admin import FeatureUpdate

    up, down = pairs_of("--upgrade", raised), pairs_of("--downgrade", lowered)
    for name in up.keys() & down.keys():
        raise senseless(f"{name} cannot go up and down: leave out --upgrade or --downgrade")
    wishes = {name: FeatureUpdate(level_of("--upgrade", name, text)) for name, text in up.items()}
    lower = {name: FeatureUpdate(level_of("--downgrade", name, text), "SAFE_DOWNGRADE") for name, text in down.items()}
    return wishes | lower


def rows_of(found: FeatureMetadata) -> list[tuple[Any, ...]]:
    """A row for each feature that is known; one that the cluster does not run is at level 0."""
    rows: list[tuple[Any, ...]] = []
    for name in sorted({*found.supported_features, *found.finalized_features}):
        supported, finalized = found.supported_features.get(name), found.finalized_features.get(name)
        bounds = (None, None) if supported is None else (supported.min_version, supported.max_version)
        level = 0 if finalized is None else finalized.max_version_level
        rows.append((name, *bounds, level, found.finalized_features_epoch))
    return rows
