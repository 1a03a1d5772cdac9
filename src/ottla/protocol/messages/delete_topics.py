"""DeleteTopics: delete topics by name, since v6 also by id."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, since, struct


@struct
class DeleteTopicState:
    """A topic by its name, or by its id if the name is None."""

    name: String | None = None
    topic_id: Uuid = ZERO_UUID


@message(key=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest(Message):
    topics: Sequence[DeleteTopicState] = since(6, default=())
    topic_names: Sequence[String] = since(0, until=5, default=(), ignorable=True)
    timeout_ms: Int32 = 0


@struct
class DeletableTopicResult:
    name: String | None = since(0, default="", nullable_since=6)
    topic_id: Uuid = since(6, default=ZERO_UUID, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = since(5, default=None, ignorable=True)


@message(key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse(Message):
    throttle_time_ms: Int32 = 0
    responses: Sequence[DeletableTopicResult] = ()
