"""Configs by who has them, after one was set or given back: values are replaced, and never changed."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.cluster.records import ConfigRecord


def reconfigured(holders: Mapping[str, Mapping[str, str]], record: ConfigRecord) -> Mapping[str, Mapping[str, str]]:
    """All of them after a record; who has no config left is not among them."""
    name = record.resource_name
    after = {**holders, name: changed(holders.get(name, {}), record)}
    return {holder: configs for holder, configs in after.items() if configs}


def changed(configs: Mapping[str, str], record: ConfigRecord) -> dict[str, str]:
    """Configs after one of them was set, or given back to its default."""
    others = {name: value for name, value in configs.items() if name != record.name}
    return others if record.value is None else {**others, record.name: record.value}
