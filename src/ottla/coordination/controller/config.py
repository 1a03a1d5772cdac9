"""What a controller is told at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ottla.coordination.cluster.features import OF_SEVERAL
from ottla.protocol.schema import Message


class ControllerConfig(Struct, frozen=True):
    """Given by the node's own settings; spans are in seconds."""

    cluster_id: str
    node_id: int = 1
    session_timeout: float = 9.0
    """How long a broker may be silent before it is fenced: Kafka's `broker.session.timeout.ms`."""
    default_partitions: int = 1
    default_replication: int = 1
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    """Configs of topics for which the controller's settings have another default than Kafka."""
    features: Mapping[str, int] = field(default_factory=lambda: OF_SEVERAL)
    """The levels that a cluster runs in which nothing has been decided yet."""
    bootstrap: Sequence[Message] = ()
    """What the log of such a cluster begins with instead, where somebody has said so."""
