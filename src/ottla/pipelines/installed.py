"""Connectors of other packages, found by their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ottla.errors import ConfigError


def load_connectors(group: str, base: type[Any], ours: Mapping[str, type[Any]]) -> dict[str, type[Any]]:
    """Return the connectors of a group by type; ConfigError for one that cannot be used."""
    found: dict[str, type[Any]] = {}
    for point in entry_points(group=group):
        package = f" of package {point.dist.name}" if point.dist is not None else ""
        what = f"connector {point.name!r}{package}"
        if point.name in ours:
            raise ConfigError(f"{what}: this type exists already; rename it, or uninstall the package")
        found[point.name] = checked_connector(what, load(what, point), base)
    return found


def load(what: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # the module of another package may raise anything
        raise ConfigError(f"{what} cannot be loaded: {error!r}; repair it, or uninstall it") from error


def checked_connector(what: str, kind: Any, base: type[Any]) -> type[Any]:
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(
            f"{what} is {kind!r}, not a {base.__name__}; derive it from {base.__module__}.{base.__name__}"
        )
    return kind
