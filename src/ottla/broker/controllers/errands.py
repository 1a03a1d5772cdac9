"""What a broker itself wants of the controllers: topics for what brokers know, and producer ids to give away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.broker.cluster.producer_ids import ProducerIds
from ottla.broker.controllers.controller_channel import ControllerChannel, Errand
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

log = logging.getLogger(__name__)
CREATE_TOPICS_VERSION = 7
MOST_REFUSED = 1_000
"""Topics whose refusal is remembered; clients can name as many as they like."""


class Errands:
    """Each is under way once."""

    def __init__(self, channel: ControllerChannel, node_id: int, epoch: Callable[[], int]) -> None:
        """`epoch` is the broker's, as registered."""
        self._channel = channel
        self._node_id = node_id
        self._epoch = epoch
        self._making: set[str] = set()
        self._refused: dict[str, str] = {}
        """Why topics could not be made when they were last asked for."""

    def make_topics(self, topics: Sequence[CreatableTopic]) -> None:
        """Have topics made, by one request; that they are there, the metadata tells."""
        wanted = [topic for topic in topics if topic.name not in self._making]
        if not wanted:
            return
        names = [topic.name for topic in wanted]
        self._making.update(names)

        def done(answer: CreateTopicsResponse | None) -> None:
            self._making.difference_update(names)
            refusals = refusals_in(answer)
            for name in names:
                self._note_refusal(name, refusals.get(name, ""))

        request = CreateTopicsRequest(wanted)
        self._channel.ask(Errand(request, CREATE_TOPICS_VERSION, CreateTopicsResponse, done))

    def _note_refusal(self, name: str, text: str) -> None:
        """Log why a topic cannot be made, once for each reason: a client that wants it asks ten times a second."""
        if not text:
            self._refused.pop(name, None)
            return
        if text != self._refused.get(name):
            log.warning("%s cannot be made: the controllers say %s", name, text)
        if len(self._refused) >= MOST_REFUSED:
            self._refused.clear()
        self._refused[name] = text

    def fetch_producer_ids(self, ids: ProducerIds) -> None:
        """Have another block of ids."""

        def done(answer: AllocateProducerIdsResponse | None) -> None:
            if answer is not None and answer.error_code:
                log.warning("no producer ids: the controllers say %s", name_of(answer.error_code))
            granted = answer is not None and not answer.error_code
            ids.give(*(answer.producer_id_start, answer.producer_id_len) if answer is not None and granted else (0, 0))

        request = AllocateProducerIdsRequest(self._node_id, self._epoch())
        self._channel.ask(Errand(request, 0, AllocateProducerIdsResponse, done))


def refusals_in(answer: CreateTopicsResponse | None) -> dict[str, str]:
    """Why topics were not made; nothing of those that are there, and nothing where there is no answer."""
    return {
        said.name: f"{name_of(said.error_code)}: {said.error_message}"
        for said in (() if answer is None else answer.topics)
        if said.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }
