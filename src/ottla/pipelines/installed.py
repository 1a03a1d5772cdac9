"""Connectors that other packages bring, by their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ottla.errors import ConfigError


def installed(group: str, base: type[Any], ours: Mapping[str, type[Any]]) -> dict[str, type[Any]]:
    """The classes of a group by the types that they are; ConfigError for one that will not do."""
    found: dict[str, type[Any]] = {}
    for point in entry_points(group=group):
        package = f" of package {point.dist.name}" if point.dist is not None else ""
        what = f"connector {point.name!r}{package}"
        if point.name in ours:
            raise ConfigError(f"{what}: there is a type of this name already; give it another, or uninstall it")
        found[point.name] = checked(what, load(what, point), base)
    return found


def load(what: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever somebody's module does
        raise ConfigError(f"{what} cannot be loaded: {error!r}; mend it, or uninstall it") from error


def checked(what: str, kind: Any, base: type[Any]) -> type[Any]:
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(
            f"{what} is {kind!r}, and no {base.__name__}; derive it from {base.__module__}.{base.__name__}"
        )
    return kind
