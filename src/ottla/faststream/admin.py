"""Ottla's admin client with the methods that faststream calls on aiokafka's."""

from __future__ import annotations

from typing import Any

from faststream.exceptions import IncorrectState
from faststream.kafka import Topic
from faststream.kafka.helpers.admin import AdminService, CreateResult

from ottla.aio.admin import Admin
from ottla.client.admin import NewTopic
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.faststream.client_settings import client_settings


class DriverAdmin(AdminService):
    """Creates the topics of subscribers."""

    def __init__(self) -> None:
        super().__init__()
        self._admin: Admin | None = None

    async def connect(self, *, settings: dict[str, Any] | None = None, **arguments: Any) -> None:
        """Create the client."""
        if self._admin is None:
            self._admin = Admin(**{**client_settings(arguments), **(settings or {})})

    async def disconnect(self) -> None:
        """Close the client."""
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()

    @property
    def client(self) -> Any:
        """The client of Ottla. Raises IncorrectState before `connect`."""
        if self._admin is None:
            raise IncorrectState("the admin client is not connected: connect the broker first")
        return self._admin

    async def create_topics(self, topics: list[Topic]) -> list[CreateResult]:
        """Create topics. A topic that exists is a success; other errors are returned, so that the subscriber starts."""
        return [CreateResult(topic.name, await self._create(topic)) for topic in topics]

    async def _create(self, topic: Topic) -> Exception | None:
        wanted = NewTopic(topic.name, topic.num_partitions, topic.replication_factor)
        try:
            await self.client.create_topics([wanted])
        except OttlaError as error:
            if not isinstance(error, KafkaError) or error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                return error
        return None
