"""One `min.insync.replicas` for all brokers, which ELRs require (KIP-966). Pure.

The controller removes replicas from the ELR when the ISR has at least `min.insync.replicas` members, because from then
on records are acknowledged that the ELR does not have. The leader compares the ISR with its own value of the config. A
broker with a lower value would acknowledge records that the replicas in the ELR lack, and one of these could be
elected. So while `eligible.leader.replicas.version` is 1, only the cluster and topics have this config, and no single
broker.
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
from ottla.coordination.cluster.topic_configs import list_defaults
from ottla.coordination.controller.config import ControllerConfig
from ottla.protocol.schema import Message

MIN_ISR = "min.insync.replicas"


def unify_min_isr(brokers: Mapping[str, Mapping[str, str]], config: ControllerConfig) -> list[Message]:
    """Return the records that set the cluster-wide value and delete those of single brokers.

    An existing cluster-wide value is kept; otherwise it becomes the one of the controller's settings.
    """
    own: list[Message] = [
        ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None) for name, each in brokers.items() if name and MIN_ISR in each
    ]
    if MIN_ISR in brokers.get("", {}):
        return own
    value = {**list_defaults(), **config.topic_defaults}[MIN_ISR]
    return [ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, value), *own]


def enables_elr(records: Iterable[Message]) -> bool:
    """Return True if the records switch ELRs on."""
    levels = [each for each in records if isinstance(each, FeatureLevelRecord) and each.name == ELR_VERSION]
    return any(each.feature_level for each in levels)


def list_cleared_elrs(record: Message) -> list[Message]:
    """Return the records that clear the ELRs that a change of `min.insync.replicas` makes invalid."""
    if not isinstance(record, ConfigRecord) or record.name != MIN_ISR:
        return []
    names = {TOPIC_RESOURCE: record.resource_name, BROKER_RESOURCE: ""}
    return [ClearElrRecord(names[record.resource_type])] if record.resource_type in names else []
