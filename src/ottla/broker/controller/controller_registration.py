"""Registration of this controller with the active controller (KIP-919): its listeners and the feature levels it supports.

The active controller checks the registrations of all controllers before it raises a feature level. The request is repeated
to the current leader at an interval. It has succeeded once the committed metadata, which each voter replays, contains the
registration with this process's incarnation id. If that registration is removed (KIP-1312), the process registers again.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any

from ottla.broker.controller.controller_peers import ControllerPeers
from ottla.broker.controller.controller_snapshots import ControllerSnapshots
from ottla.broker.controller.raft_driver import RaftDriver
from ottla.broker.event_loop.timers import Timers
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import PROTOCOLS
from ottla.clock import Clock
from ottla.coordination.cluster.features import BROKER_LEVELS
from ottla.coordination.controller.events import ControllerRequest
from ottla.coordination.quorum.events import ResponseReceived
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.errors import OttlaError, name_of
from ottla.protocol.messages.broker_registration import Feature, Listener
from ottla.protocol.messages.controller_registration import ControllerRegistrationRequest

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.5


def build_registration(config: BrokerConfig, presence: OwnEntry) -> ControllerRegistrationRequest:
    protocols = config.protocols()
    return ControllerRegistrationRequest(
        config.node_id,
        uuid.uuid4(),
        listeners=[
            Listener(each.name, each.host, each.port, PROTOCOLS.index(protocols[each.name]))
            for each in presence.endpoints
        ],
        features=[Feature(name, *levels) for name, levels in BROKER_LEVELS.items()],
    )


class ControllerRegistration:
    """The registration of one process. A registration by an earlier process of the same node does not count."""

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        driver: RaftDriver,
        peers: ControllerPeers,
        snapshots: ControllerSnapshots,
    ) -> None:
        """`peers` is used for this alone: a request on the quorum's connections would wait behind those of Raft."""
        self._request = request
        self._driver = driver
        self._peers = peers
        self._snapshots = snapshots
        self._number = 0
        self._refusal = 0

    def schedule(self, timers: Timers, clock: Clock) -> None:
        """Start a timer that sends the registration whenever it is not in the metadata."""

        def check() -> None:
            try:
                if not self.is_over:
                    self._check()
            except OttlaError:
                raise  # the metadata log cannot be written, and the controller stops
            except Exception:
                logger.exception("registering this controller failed; retrying")
            timers.schedule(clock.monotonic() + LOOK_SECONDS, check)

        timers.schedule(clock.monotonic() + LOOK_SECONDS, check)

    @property
    def is_over(self) -> bool:
        """True if the metadata contains this registration, or this node cannot read the metadata."""
        metadata = self._snapshots.metadata
        if metadata is None:
            return True
        known = metadata.controllers.get(self._request.controller_id)
        return known is not None and known.incarnation_id == self._request.incarnation_id

    def close(self) -> None:
        self._peers.close()

    def _check(self) -> None:
        self._handle_response()
        leader = self._driver.raft.leader_id
        if self._driver.term is not None:
            self._driver.decide(ControllerRequest(0, self._request), ignore_reply)
        elif leader is not None and leader != self._driver.raft.me.id:
            self._number += 1
            self._peers.send_request(leader, self._number, self._request)

    def _handle_response(self) -> None:
        """Log a rejection once; the responses have no other use."""
        for said in self._peers.news:
            code = said.response.error_code if isinstance(said, ResponseReceived) else 0  # type: ignore[attr-defined]
            if code not in (0, self._refusal):
                logger.warning("controller %d does not take this one on its list: %s", said.by, name_of(code))  # type: ignore[union-attr]
            self._refusal = code or self._refusal
        self._peers.news.clear()


def ignore_reply(reply: Any) -> None:
    """Ignore the reply: success is seen in the metadata."""
