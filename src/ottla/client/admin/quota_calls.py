"""Describe and change client quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, lookup_any_broker, raise_first
from ottla.client.admin.client_quota import DEFAULT, ClientQuotaEntity
from ottla.client.interface.arguments import checked_dict, checked_flag, checked_text
from ottla.errors import error_for
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntryData
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest, EntityData

EXAMPLE = "{ClientQuotaEntity(user='alice'): {'producer_byte_rate': 1_000_000}}"
MATCH_EXACT, MATCH_DEFAULT = 0, 1


class QuotaCalls:
    """Implements the quota methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None, timeout: float | None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        components = [
            ComponentData(kind, MATCH_DEFAULT if name is None else MATCH_EXACT, name)
            for kind, name in (check_entity(entity).format_parts() if entity is not None else {}).items()
        ]
        request = DescribeClientQuotasRequest(components, strict=entity is not None)
        query: AdminQuery[str, dict[ClientQuotaEntity, dict[str, float]]] = AdminQuery(
            lookup_any_broker,
            lambda _: request,
            lambda _, message: {
                "": error_for(message.error_code, message.error_message or "")
                if message.error_code
                else {
                    parse_entity(each.entity): {value.key: value.value for value in each.values}
                    for each in message.entries
                }
            },
        )
        found, failed = self._driver.run_query(query, [""], timeout)
        raise_first(failed)
        return found[""]

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        timeout: float | None,
        *,
        validate_only: bool,
    ) -> None:
        checked_flag("validate_only", validate_only)
        wanted = {
            check_entity(each): [
                OpData(checked_text(f"a limit of {each}", key, "producer_byte_rate"), quota_value(value), value is None)
                for key, value in checked_dict(f"the limits of {each}", limits, "{'producer_byte_rate': 1e6}").items()
            ]
            for each, limits in checked_dict("changes", changes, EXAMPLE).items()
        }
        query: AdminQuery[ClientQuotaEntity, bool] = AdminQuery(
            lookup_any_broker,
            lambda entities: AlterClientQuotasRequest(
                [
                    RequestEntryData([EntityData(*part) for part in each.format_parts().items()], wanted[each])
                    for each in entities
                ],
                validate_only,
            ),
            lambda _, message: {
                parse_entity(each.entity): error_for(each.error_code, each.error_message or "")
                if each.error_code
                else True
                for each in message.entries
            },
        )
        _, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)


def check_entity(entity: Any) -> ClientQuotaEntity:
    """Return the entity. Raises ValueError if it names nothing."""
    if isinstance(entity, ClientQuotaEntity) and entity.format_parts():
        return entity
    raise ValueError(
        f"{entity!r} is not a quota entity: write ClientQuotaEntity(user='alice'), optionally with client_id, or with ip alone"
    )


def quota_value(limit: Any) -> float:
    """Return the quota as a number; 0 for a deleted one."""
    if limit is None or (isinstance(limit, int | float) and not isinstance(limit, bool)):
        return float(limit or 0)
    raise ValueError(f"invalid quota {limit!r}: expected a number, or None to delete it")


def parse_entity(parts: Any) -> ClientQuotaEntity:
    """Return the entity of a response."""
    named = {each.entity_type: DEFAULT if each.entity_name is None else each.entity_name for each in parts}
    return ClientQuotaEntity(named.get("user"), named.get("client-id"), named.get("ip"))
