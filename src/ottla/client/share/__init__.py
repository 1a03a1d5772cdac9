"""Receive records as a member of a share group (KIP-932).

ShareConsumer.poll ─► ShareFetcher ─► ConsumerNetworkClient ─► NetworkClient
   │                     ├ a ShareSessionHandler per broker: which request comes next (pure)
   │                     └ CompletedShareFetch ─► ConsumerRecords
   ├─► DeliveredRecords: what the user holds and has acknowledged (pure)
   └─► ShareConsumerCoordinator
          └─ a ShareMembership (pure, under a lock) ◄─ HeartbeatThread ─► a NetworkClient of its own

The names below are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "AcknowledgeType": "ottla.client.share.state.acknowledgements",
    "ShareConsumerConfig": "ottla.client.share.config",
    "ShareConsumer": "ottla.client.share.share_consumer",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.client.share.config import ShareConsumerConfig as ShareConsumerConfig
    from ottla.client.share.share_consumer import ShareConsumer as ShareConsumer
    from ottla.client.share.state.acknowledgements import AcknowledgeType as AcknowledgeType


__getattr__ = loader_of(__name__, HOME)
