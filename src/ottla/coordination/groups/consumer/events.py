"""What can happen to consumer groups beside what happens to all groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from ottla.coordination.groups.consumer.image import TopicImage
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

Sees = Callable[[str], bool]
"""Whether a client may know of a topic of that name."""
OwnSettings = Mapping[str, Mapping[str, int]]
"""By group, fields of `GroupConfig` that are others for it."""


class ConsumerHeartbeat(Struct, frozen=True):
    """A member joins, stays or goes. The reply is a ConsumerGroupHeartbeatResponse."""

    ticket: int
    request: ConsumerGroupHeartbeatRequest
    version: int
    fresh_id: str
    """A member id that nobody has."""
    client_id: str
    client_host: str
    wall_ms: int
    sees: Sees | None = None
    """Which of the topics that its expression matches it may know of; None: all."""


class TopicsSeen(Struct, frozen=True):
    """The cluster's topics, whenever they are others than before. There is no reply."""

    ticket: int
    image: TopicImage


class SettingsSeen(Struct, frozen=True):
    """What single groups are told, whenever it is something else than before. There is no reply."""

    ticket: int
    settings: OwnSettings


class ImageSeen(NamedTuple):
    """As a record, which is kept in memory only."""

    image: TopicImage


class OwnSettingsSeen(NamedTuple):
    settings: OwnSettings
