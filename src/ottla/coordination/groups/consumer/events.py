"""The events of consumer groups, in addition to those of all groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from ottla.coordination.groups.consumer.image import TopicImage
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

Sees = Callable[[str], bool]
"""True if the client may see the topic of that name."""
OwnSettings = Mapping[str, Mapping[str, Any]]
"""By group, fields of `GroupConfig` that are others for it."""


class ConsumerHeartbeat(Struct, frozen=True):
    """A member joins, stays or leaves. The reply is a ConsumerGroupHeartbeatResponse."""

    ticket: int
    request: ConsumerGroupHeartbeatRequest
    version: int
    new_member_id: str
    """A random, unused member id."""
    client_id: str
    client_host: str
    wall_ms: int
    sees: Sees | None = None
    """The check for topics that match its regular expression: True if the member may see one. None allows all."""


class TopicsChanged(Struct, frozen=True):
    """The cluster's topics, whenever they are others than before. There is no reply."""

    ticket: int
    image: TopicImage


class GroupConfigsChanged(Struct, frozen=True):
    """The configs of groups have changed. There is no reply."""

    ticket: int
    settings: OwnSettings


class TopicImageRecord(NamedTuple):
    """The image of topics as a record, which is kept in memory only."""

    image: TopicImage


class GroupConfigsRecord(NamedTuple):
    settings: OwnSettings
