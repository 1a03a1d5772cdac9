"""`ottla cluster features`: which features the cluster runs at which level, and which it could."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.tables import show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import FeatureMetadata

COLUMNS = ("FEATURE", "SUPPORTED-MIN", "SUPPORTED-MAX", "FINALIZED", "EPOCH")


@click.command()
@bootstrap_server
@json_option
@settings_option("client")
def features(bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the level at which the cluster runs each feature, and those that the broker which is asked could run.

    Levels are numbers, also that of metadata.version: 30 is Kafka's 4.3-IV0.
    """
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_features()
    show(COLUMNS, rows_of(found), in_json=in_json)


def rows_of(found: FeatureMetadata) -> list[tuple[Any, ...]]:
    """A row for each feature that is known; one that the cluster does not run is at level 0."""
    rows: list[tuple[Any, ...]] = []
    for name in sorted({*found.supported_features, *found.finalized_features}):
        supported, finalized = found.supported_features.get(name), found.finalized_features.get(name)
        bounds = (None, None) if supported is None else (supported.min_version, supported.max_version)
        level = 0 if finalized is None else finalized.max_version_level
        rows.append((name, *bounds, level, found.finalized_features_epoch))
    return rows
