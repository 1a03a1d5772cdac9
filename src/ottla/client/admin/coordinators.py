"""Finds the brokers that keep groups and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Lookup, Question, any_broker
from ottla.client.metadata.coordinators import GROUP, LAST_VERSION_WITH_ONE_KEY, TRANSACTION
from ottla.client.runtime.deadline import Deadline
from ottla.errors import KafkaError, error_for
from ottla.model import Node
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

KINDS = {GROUP: "group", TRANSACTION: "transactional id"}


def coordinators(key_type: int) -> Lookup[str]:
    """A lookup of groups, or of transactional ids."""

    def read(keys: list[str], answer: Any) -> Mapping[str, Node | KafkaError]:
        (key,) = keys
        if answer.error_code:
            reason = answer.error_message or f"the coordinator of {KINDS[key_type]} {key!r}"
            return {key: error_for(answer.error_code, reason)}
        return {key: Node(answer.node_id, answer.host, answer.port)}

    question: Question[str, Node] = Question(
        any_broker,
        lambda keys: FindCoordinatorRequest(key=keys[0], key_type=key_type),
        read,
        together=False,
        max_version=LAST_VERSION_WITH_ONE_KEY,
    )

    def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
        return driver.round(question, keys, deadline)

    return lookup
