"""The log of a consumer that knows its group: each line says whose it is, as the Java client's do."""

from __future__ import annotations

import logging
from typing import Any

from ottla.client.consumer.config import ConsumerConfig


def group_log(config: ConsumerConfig, client_id: str) -> logging.LoggerAdapter[Any]:
    """A logger whose lines begin with the client's id and its group's."""
    instance = f"instanceId={config.group_instance_id}, " if config.group_instance_id else ""
    prefix = f"[Consumer {instance}clientId={client_id}, groupId={config.group_id}] "
    return Prefixed(logging.getLogger("ottla.client.consumer.group.consumer_coordinator"), {"prefix": prefix})


class Prefixed(logging.LoggerAdapter[Any]):
    """Puts the prefix before each text."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        assert self.extra is not None
        return f"{str(self.extra['prefix']).replace('%', '%%')}{msg}", kwargs
