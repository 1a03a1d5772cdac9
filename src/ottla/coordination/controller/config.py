"""The configuration of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ottla.coordination.cluster.features import INITIAL_CLUSTER_LEVELS
from ottla.protocol.schema import Message


class ControllerConfig(Struct, frozen=True):
    """The settings of the node that the controller uses. Durations are in seconds."""

    cluster_id: str
    node_id: int = 1
    session_timeout: float = 9.0
    """The time without a heartbeat after which a broker is fenced: `broker.session.timeout.ms`."""
    default_partitions: int = 1
    default_replication: int = 1
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    """Topic configs that the controller's settings give another default than Kafka's."""
    features: Mapping[str, int] = field(default_factory=lambda: INITIAL_CLUSTER_LEVELS)
    """The feature levels of a new cluster."""
    bootstrap: Sequence[Message] = ()
    """The first records of the log of a new cluster, as formatted; `features` is used if it is empty."""
    own_broker: int | None = None
    """The id of the broker in the process of the only controller.

    It stops together with the controller, so it has no session.
    """
