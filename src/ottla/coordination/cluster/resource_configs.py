"""The configs of many resources of one kind, by name. The values are immutable and replaced by each change."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.cluster.records import ConfigRecord


class ResourceConfigs:
    """The configs of groups, or of client metrics subscriptions.

    A change does not copy the other resources: the mapping for readers is built when it is next read.
    """

    def __init__(self, holders: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._configs = dict(holders or {})
        self._readers_mapping: Mapping[str, Mapping[str, str]] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceConfigs) and self._configs == other._configs

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def by_name(self) -> Mapping[str, Mapping[str, str]]:
        """Return the configs by name.

        The mapping is the same object until the next change, and never changes itself.
        """
        if self._readers_mapping is None:
            self._readers_mapping = dict(self._configs)
        return self._readers_mapping

    def replay(self, record: ConfigRecord) -> None:
        """Set or delete a config. A resource without configs is removed."""
        name = record.resource_name
        configs = apply_config_record(self._configs.get(name, {}), record)
        self._readers_mapping = None
        if configs:
            self._configs[name] = configs
        else:
            self._configs.pop(name, None)


def apply_config_record(configs: Mapping[str, str], record: ConfigRecord) -> dict[str, str]:
    """Return the configs after one of them was set, or deleted if the record has no value."""
    others = {name: value for name, value in configs.items() if name != record.name}
    return others if record.value is None else {**others, record.name: record.value}
