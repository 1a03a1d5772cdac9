"""Requests of the broker itself to the controllers: creation of topics for clients, and blocks of producer ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.registration.controller_channel import ChannelRequest, ControllerChannel
from ottla.errors import ErrorCode, name_of

if TYPE_CHECKING:
    from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
    from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsResponse

log = logging.getLogger(__name__)
CREATE_TOPICS_VERSION = 7
MOST_REFUSED = 1_000
"""Limit of topics with a remembered error, as clients can name any number."""


class InternalRequests:
    """Sends these requests, each once at a time."""

    def __init__(self, channel: ControllerChannel, node_id: int, epoch: Callable[[], int]) -> None:
        """`epoch` returns the broker epoch."""
        self._channel = channel
        self._node_id = node_id
        self._epoch = epoch
        self._making: set[str] = set()
        self._refused: dict[str, str] = {}
        """The last error of each topic that could not be created."""

    def create_topics(self, topics: Sequence[CreatableTopic]) -> None:
        """Request topics that are not being created yet. Their creation is seen in the metadata."""
        from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

        wanted = [topic for topic in topics if topic.name not in self._making]
        if not wanted:
            return
        names = [topic.name for topic in wanted]
        self._making.update(names)

        def done(answer: CreateTopicsResponse | None) -> None:
            self._making.difference_update(names)
            refusals = refusals_in(answer)
            for name in names:
                self._log_refusal(name, refusals.get(name, ""))

        request = CreateTopicsRequest(wanted)
        self._channel.send_request(ChannelRequest(request, CREATE_TOPICS_VERSION, CreateTopicsResponse, done))

    def find_refusal(self, name: str) -> str:
        """Return the last error of a topic that could not be created; empty if there is none."""
        return self._refused.get(name, "")

    def _log_refusal(self, name: str, text: str) -> None:
        """Log why a topic cannot be created, once per reason: clients that need it retry ten times a second."""
        if not text:
            self._refused.pop(name, None)
            return
        if text != self._refused.get(name):
            log.warning("%s cannot be created: the controllers returned %s", name, text)
        if len(self._refused) >= MOST_REFUSED:
            self._refused.clear()
        self._refused[name] = text

    def fetch_producer_ids(self, accept: Callable[[int, int], None]) -> None:
        """Request the next block of producer ids.

        `accept` is called with its first id and size; after an error, which is logged, with an empty block.
        """
        from ottla.protocol.messages.allocate_producer_ids import (
            AllocateProducerIdsRequest,
            AllocateProducerIdsResponse,
        )

        def done(answer: AllocateProducerIdsResponse | None) -> None:
            if answer is not None and answer.error_code:
                log.warning("no producer ids: the controllers returned %s", name_of(answer.error_code))
            granted = answer is not None and not answer.error_code
            accept(*(answer.producer_id_start, answer.producer_id_len) if answer is not None and granted else (0, 0))

        request = AllocateProducerIdsRequest(self._node_id, self._epoch())
        self._channel.send_request(ChannelRequest(request, 0, AllocateProducerIdsResponse, done))


def refusals_in(answer: CreateTopicsResponse | None) -> dict[str, str]:
    """Return the errors of topics that were not created; empty without a response. Topics that exist are no errors."""
    return {
        said.name: f"{name_of(said.error_code)}: {said.error_message}"
        for said in (() if answer is None else answer.topics)
        if said.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }
