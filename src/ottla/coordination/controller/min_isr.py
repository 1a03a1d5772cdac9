"""`min.insync.replicas` where copies may lead that fell out of sync as the last ones (KIP-966): one number for the whole cluster. Pure.

Controllers strike such copies out as soon as so many are in sync that records are acknowledged, and the leader counts for itself how many
that are. A broker that asks for fewer than the controllers know of would acknowledge what such a copy does not have. So no broker has a number of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.coordination.cluster.features import ELR_VERSION
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
)
from ottla.coordination.cluster.topic_configs import defaults
from ottla.coordination.controller.config import ControllerConfig
from ottla.protocol.schema import Message

MIN_ISR = "min.insync.replicas"


def one_for_all(brokers: Mapping[str, Mapping[str, str]], config: ControllerConfig) -> list[Message]:
    """What makes it so: the controller's own setting counts for all where nothing else does, and brokers lose theirs."""
    own: list[Message] = [
        ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None) for name, each in brokers.items() if name and MIN_ISR in each
    ]
    if MIN_ISR in brokers.get("", {}):
        return own
    value = {**defaults(), **config.topic_defaults}[MIN_ISR]
    return [ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, value), *own]


def is_raised_by(records: Iterable[Message]) -> bool:
    """Whether from now on such copies may lead."""
    levels = [each for each in records if isinstance(each, FeatureLevelRecord) and each.name == ELR_VERSION]
    return any(each.feature_level for each in levels)


def cleared_by(record: Message) -> list[Message]:
    """Who might lead without being in sync was counted by the number of before."""
    if not isinstance(record, ConfigRecord) or record.name != MIN_ISR:
        return []
    names = {TOPIC_RESOURCE: record.resource_name, BROKER_RESOURCE: ""}
    return [ClearElrRecord(names[record.resource_type])] if record.resource_type in names else []
