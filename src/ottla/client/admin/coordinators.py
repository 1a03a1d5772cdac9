"""Look up the coordinators of groups and transactional ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, Lookup, lookup_any_broker
from ottla.client.metadata.coordinators import GROUP, LAST_VERSION_WITH_ONE_KEY, TRANSACTION
from ottla.client.runtime.deadline import Deadline
from ottla.errors import KafkaError, error_for
from ottla.model import Node
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

KINDS = {GROUP: "group", TRANSACTION: "transactional id"}


def coordinator_lookup(key_type: int) -> Lookup[str]:
    """Return the lookup for groups or for transactional ids."""

    def read(keys: list[str], response: Any) -> Mapping[str, Node | KafkaError]:
        (key,) = keys
        if response.error_code:
            reason = response.error_message or f"the coordinator of {KINDS[key_type]} {key!r}"
            return {key: error_for(response.error_code, reason)}
        return {key: Node(response.node_id, response.host, response.port)}

    query: AdminQuery[str, Node] = AdminQuery(
        lookup_any_broker,
        lambda keys: FindCoordinatorRequest(key=keys[0], key_type=key_type),
        read,
        can_batch=False,
        max_version=LAST_VERSION_WITH_ONE_KEY,
    )

    def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
        return driver.run_round(query, keys, deadline)

    return lookup
