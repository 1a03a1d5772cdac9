"""A controller that has started tells the active one where it is and what it can (KIP-919): who raises a level asks all of them first.

It has said so once the metadata do, which each voter reads; who leads by then is asked anew until they do.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any

from ottla.broker.controllers.controller_peers import ControllerPeers
from ottla.broker.controllers.controller_snapshots import ControllerSnapshots
from ottla.broker.controllers.raft_driver import RaftDriver
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import PROTOCOLS
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.features import OF_A_BROKER
from ottla.coordination.controller.events import Asked
from ottla.coordination.quorum.events import ResponseReceived
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.errors import OttlaError, name_of
from ottla.protocol.messages.broker_registration import Feature, Listener
from ottla.protocol.messages.controller_registration import ControllerRegistrationRequest

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.5


def introduction_of(config: BrokerConfig, presence: OwnEntry) -> ControllerRegistrationRequest:
    protocols = config.protocols()
    return ControllerRegistrationRequest(
        config.node_id,
        uuid.uuid4(),
        listeners=[
            Listener(each.name, each.host, each.port, PROTOCOLS.index(protocols[each.name]))
            for each in presence.endpoints
        ],
        features=[Feature(name, *levels) for name, levels in OF_A_BROKER.items()],
    )


class Introduction:
    """Of one start: what another process of this node has said counts no more."""

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        driver: RaftDriver,
        peers: ControllerPeers,
        snapshots: ControllerSnapshots,
    ) -> None:
        """`peers` are for this alone: on the quorum's connections a question waits behind what its machine asks."""
        self._request = request
        self._driver = driver
        self._peers = peers
        self._snapshots = snapshots
        self._number = 0
        self._refusal = 0

    def begin(self, timers: Timers, clock: Clock) -> None:
        """Look from time to time whether it is known, until it is."""

        def look() -> None:
            if self.is_over:
                return
            try:
                self._look()
            except OttlaError:
                raise  # the log of the quorum cannot be written, and the controller ends
            except Exception:
                logger.exception("this controller could not introduce itself, and tries again")
            timers.at(clock.monotonic() + LOOK_SECONDS, look)

        timers.at(clock.monotonic() + LOOK_SECONDS, look)

    @property
    def is_over(self) -> bool:
        """Whether it is known, or would not hear of it."""
        metadata = self._snapshots.metadata
        if metadata is None:
            return True
        known = metadata.controllers.get(self._request.controller_id)
        return known is not None and known.incarnation_id == self._request.incarnation_id

    def close(self) -> None:
        self._peers.close()

    def _look(self) -> None:
        self._hear()
        leader = self._driver.raft.leader_id
        if self._driver.term is not None:
            self._driver.decide(Asked(0, self._request), nobody)
        elif leader is not None and leader != self._driver.raft.me.id:
            self._number += 1
            self._peers.ask(leader, self._number, self._request)

    def _hear(self) -> None:
        """What was answered matters only where it is a refusal, which is told once."""
        for said in self._peers.news:
            code = said.response.error_code if isinstance(said, ResponseReceived) else 0  # type: ignore[attr-defined]
            if code not in (0, self._refusal):
                logger.warning("controller %d does not take this one on its list: %s", said.by, name_of(code))  # type: ignore[union-attr]
            self._refusal = code or self._refusal
        self._peers.news.clear()


def nobody(reply: Any) -> None:
    """Takes an answer that the metadata tell as well."""
