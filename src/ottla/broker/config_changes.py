"""What is answered for each resource whose configs were to be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.coordination.cluster.topic_request import Refusal

R = TypeVar("R")


def answers(make: Callable[..., R], resources: Sequence[Any], refusals: Sequence[Refusal | None]) -> list[R]:
    """One answer for each resource, made by `make`: AlterConfigs and IncrementalAlterConfigs have a class each."""
    return [
        make(
            error_code=refusal.code if refusal else 0,
            error_message=str(refusal) if refusal else None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, refusal in zip(resources, refusals, strict=True)
    ]
