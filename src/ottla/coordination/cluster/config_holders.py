"""Configs by who has them, after one was set or given back: values are replaced, and never changed."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.cluster.records import ConfigRecord


class ConfigHolders:
    """The configs of groups, or of subscriptions, by their names.

    A change costs the same however many there are: the mapping for readers is made when it is next asked for.
    """

    def __init__(self, holders: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._now = dict(holders or {})
        self._shown: Mapping[str, Mapping[str, str]] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigHolders) and self._now == other._now

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def all(self) -> Mapping[str, Mapping[str, str]]:
        """The same object until one changes; it does not change any more."""
        if self._shown is None:
            self._shown = dict(self._now)
        return self._shown

    def replay(self, record: ConfigRecord) -> None:
        """Set a config, or give it back; a holder without configs is forgotten."""
        name = record.resource_name
        configs = changed(self._now.get(name, {}), record)
        self._shown = None
        if configs:
            self._now[name] = configs
        else:
            self._now.pop(name, None)


def changed(configs: Mapping[str, str], record: ConfigRecord) -> dict[str, str]:
    """Configs after one of them was set, or given back to its default."""
    others = {name: value for name, value in configs.items() if name != record.name}
    return others if record.value is None else {**others, record.name: record.value}
