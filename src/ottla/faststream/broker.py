"""The broker for faststream: its Kafka broker, on Ottla's clients.

    publish ──► faststream.kafka ──► DriverProducer ──► aio.Producer ──► topic
    function ◄── faststream.kafka ◄── DriverConsumer ◄── aio.Consumer ◄────┘

Decorators, parsing, middlewares, acknowledgement policies and AsyncAPI documents are faststream's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from faststream._internal.parser import DefaultCodec
from faststream.kafka import KafkaBroker, KafkaPublisher, KafkaRoute, KafkaRouter, TestKafkaBroker

from ottla.client.config.synonyms import translate_names
from ottla.faststream.admin import DriverAdmin
from ottla.faststream.consumer import DriverConsumer
from ottla.faststream.producer import DriverProducer


class OttlaBroker(KafkaBroker):
    """Publish messages to topics, and call functions for those of others, with faststream.

    The arguments are those of `faststream.kafka.KafkaBroker`. `settings`, `consumer_settings` and `producer_settings` are
    further settings of Ottla's clients: of all, of consumers, of the producer.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] = "localhost",
        *,
        settings: Mapping[str, Any] | None = None,
        consumer_settings: Mapping[str, Any] | None = None,
        producer_settings: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(bootstrap_servers, **arguments)
        self._common = as_keywords(settings or {})
        self._of_consumers = {**self._common, **as_keywords(consumer_settings or {})}
        self._of_producer = {**self._common, **as_keywords(producer_settings or {})}
        config = self.config.broker_config
        config.admin = DriverAdmin()
        config.builder = self._consumer_builder()

    async def _connect(self) -> Callable[..., Any]:
        config = self.config.broker_config
        if not config.consumer_only:
            producer: Any = DriverProducer(settings=self._of_producer, **self._connection_kwargs)
            codec = config.broker_codec or DefaultCodec()
            await config.producer.connect(producer, serializer=config.fd_config._serializer, codec=codec)
            await config.admin.connect(settings=self._common, **self._connection_kwargs)
        config.builder = self._consumer_builder()
        return config.builder

    def _consumer_builder(self) -> Callable[..., Any]:
        """Return the function that creates the consumer of a subscriber."""
        arguments = dict(self._connection_kwargs)
        client_rack = self.config.broker_config.client_rack
        if client_rack is not None:
            arguments["client_rack"] = client_rack
        return partial(DriverConsumer, settings=self._of_consumers, **arguments)


class OttlaRouter(KafkaRouter):
    """Collect subscribers and publishers, to include them in an `OttlaBroker`."""


class OttlaRoute(KafkaRoute):
    """A subscriber of an `OttlaRouter`, given as an argument."""


class OttlaPublisher(KafkaPublisher):
    """A publisher of an `OttlaRoute`."""


class TestOttlaBroker(TestKafkaBroker, broker=OttlaBroker):
    """Run an `OttlaBroker` in memory: what is published is passed to the functions at once. With `with_real=True` it connects."""

    __test__ = False


def as_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under names with underscores."""
    return {name.replace(".", "_"): value for name, value in translate_names(settings).items()}
