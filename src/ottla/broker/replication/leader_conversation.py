"""One conversation with another broker, in a thread: a question, then its answer, which is handed to the loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from ottla.broker.peers.peer_connection import PeerConnection
from ottla.coordination.quorum.observer import Address
from ottla.errors import OttlaError
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)
ANSWER_SECONDS = 30.0
"""`replica.socket.timeout.ms`"""


class Question(NamedTuple):
    address: Address
    request: Message
    version: int
    answer: type[Message]
    done: Callable[[Any], None]
    """Called in the loop with the answer, or with an OttlaError."""


class LeaderConversation:
    """The thread starts with the first question."""

    def __init__(self, name: str, call_soon: Callable[[Callable[[], None]], None], connection: PeerConnection) -> None:
        self._name = name
        self._call_soon = call_soon
        self._connection = connection
        self._questions: SimpleQueue[Question | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, question: Question) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._questions.put(question)

    def close(self) -> None:
        self._questions.put(None)
        self._connection.give_up()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            answer: Message | OttlaError
            try:
                answer = self._connection.ask(
                    question.address, question.request, question.version, question.answer, ANSWER_SECONDS
                )
            except OttlaError as error:
                answer = error
            except Exception as error:
                log.exception("%s: a question failed", self._name)
                answer = OttlaError(f"the question failed: {error!r}")
            self._call_soon(lambda done=question.done, answer=answer: done(answer))  # type: ignore[misc]
