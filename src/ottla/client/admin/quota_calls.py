"""Limits of what clients may use: told and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, any_broker, raise_first
from ottla.client.admin.client_quota import DEFAULT, ClientQuotaEntity
from ottla.client.interface.arguments import checked_dict, checked_flag, checked_text
from ottla.errors import error_for
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntryData
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest, EntityData

EXAMPLE = "{ClientQuotaEntity(user='alice'): {'producer_byte_rate': 1_000_000}}"
EXACT, OF_NOBODY = 0, 1


class QuotaCalls:
    """What an admin does with limits; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None, timeout: float | None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        components = [
            ComponentData(kind, OF_NOBODY if name is None else EXACT, name)
            for kind, name in (checked(entity).parts() if entity is not None else {}).items()
        ]
        request = DescribeClientQuotasRequest(components, strict=entity is not None)
        question: Question[str, dict[ClientQuotaEntity, dict[str, float]]] = Question(
            any_broker,
            lambda _: request,
            lambda _, message: {
                "": error_for(message.error_code, message.error_message or "")
                if message.error_code
                else {
                    entity_of(each.entity): {value.key: value.value for value in each.values}
                    for each in message.entries
                }
            },
        )
        found, failed = self._driver.ask(question, [""], timeout)
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
            checked(each): [
                OpData(checked_text(f"a limit of {each}", key, "producer_byte_rate"), number_of(value), value is None)
                for key, value in checked_dict(f"the limits of {each}", limits, "{'producer_byte_rate': 1e6}").items()
            ]
            for each, limits in checked_dict("changes", changes, EXAMPLE).items()
        }
        question: Question[ClientQuotaEntity, bool] = Question(
            any_broker,
            lambda some: AlterClientQuotasRequest(
                [RequestEntryData([EntityData(*part) for part in each.parts().items()], wanted[each]) for each in some],
                validate_only,
            ),
            lambda _, message: {
                entity_of(each.entity): error_for(each.error_code, each.error_message or "")
                if each.error_code
                else True
                for each in message.entries
            },
        )
        _, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)


def checked(entity: Any) -> ClientQuotaEntity:
    """Somebody who can have limits."""
    if isinstance(entity, ClientQuotaEntity) and entity.parts():
        return entity
    raise ValueError(
        f"{entity!r} has no limits: write ClientQuotaEntity(user='alice'), with client_id, or with ip alone"
    )


def number_of(limit: Any) -> float:
    """How much somebody may use; lifted limits travel as nothing."""
    if limit is None or (isinstance(limit, int | float) and not isinstance(limit, bool)):
        return float(limit or 0)
    raise ValueError(f"a limit is a number, or None to lift it, not {limit!r}")


def entity_of(parts: Any) -> ClientQuotaEntity:
    """Whom an answer is about."""
    named = {each.entity_type: DEFAULT if each.entity_name is None else each.entity_name for each in parts}
    return ClientQuotaEntity(named.get("user"), named.get("client-id"), named.get("ip"))
