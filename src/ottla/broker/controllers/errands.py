"""What a broker itself wants of the controllers: topics for what brokers know, and producer ids to give away."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.cluster.producer_ids import ProducerIds
from ottla.broker.controllers.forwarder import Errand, Forwarder
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

log = logging.getLogger(__name__)
CREATE_TOPICS_VERSION = 7


class Errands:
    """Each is under way once."""

    def __init__(self, forwarder: Forwarder, node_id: int, epoch: Callable[[], int]) -> None:
        """`epoch` is the broker's, as registered."""
        self._forwarder = forwarder
        self._node_id = node_id
        self._epoch = epoch
        self._making: set[str] = set()
        self._refused: dict[str, str] = {}
        """Why a topic could not be made when it was last asked for; empty where it was."""

    def make_topic(self, topic: CreatableTopic) -> None:
        """Have a topic made; that it is there, the metadata tells."""
        if topic.name in self._making:
            return
        self._making.add(topic.name)

        def done(answer: CreateTopicsResponse | None) -> None:
            self._making.discard(topic.name)
            text = refusal_in(answer)
            if text and text != self._refused.get(topic.name):  # whoever wants it asks ten times a second
                log.warning("%s cannot be made: the controllers say %s", topic.name, text)
            self._refused[topic.name] = text

        request = CreateTopicsRequest([topic])
        self._forwarder.ask(Errand(request, CREATE_TOPICS_VERSION, CreateTopicsResponse, done))

    def fetch_producer_ids(self, ids: ProducerIds) -> None:
        """Have another block of ids."""

        def done(answer: AllocateProducerIdsResponse | None) -> None:
            if answer is not None and answer.error_code:
                log.warning("no producer ids: the controllers say %s", name_of(answer.error_code))
            granted = answer is not None and not answer.error_code
            ids.give(*(answer.producer_id_start, answer.producer_id_len) if answer is not None and granted else (0, 0))

        request = AllocateProducerIdsRequest(self._node_id, self._epoch())
        self._forwarder.ask(Errand(request, 0, AllocateProducerIdsResponse, done))


def refusal_in(answer: CreateTopicsResponse | None) -> str:
    """Why the one topic that was asked for was not made; empty where it is there, or nobody answered."""
    said = answer.topics[0] if answer is not None and answer.topics else None
    if said is None or said.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return ""
    return f"{name_of(said.error_code)}: {said.error_message}"
