"""Create the assignors of `partition.assignment.strategy`.

A name is Kafka's short name or Java class; an object must have the methods of `Assignor`; a function of three arguments
is a user-defined assignor (`assignors/function.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignor, RebalanceProtocol
from ottla.config import unknown
from ottla.errors import ConfigError

SETTING = "partition.assignment.strategy"
PACKAGE = "ottla.client.consumer.assignors"
KNOWN: Mapping[str, tuple[str, str]] = {
    "range": ("range", "RangeAssignor"),
    "roundrobin": ("round_robin", "RoundRobinAssignor"),
    "sticky": ("sticky", "StickyAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
"""The module and the class of each assignor, by its short name."""
DEFAULT = ("range", "cooperative-sticky")
"""Kafka's default: the group uses the range assignor, because it comes first. Once all members omit range, the group
uses the cooperative sticky one.
"""
JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
METHODS = ("name", "supported_protocols", "version", "subscription_user_data", "assign", "on_assignment")


def choose_assignors(chosen: Sequence[Any]) -> Mapping[str, Assignor]:
    """Return the assignors by name, the preferred one first. Raises ConfigError for an unknown or duplicate one."""
    if not chosen:
        raise ConfigError(f"{SETTING} is empty: name an assignor, such as range")
    found: dict[str, Assignor] = {}
    for one in chosen:
        assignor = create_by_name(one) if isinstance(one, str) else create_custom(one)
        if assignor.name in found:
            raise ConfigError(f"{SETTING} has two assignors named {assignor.name!r}; remove or rename one")
        found[assignor.name] = assignor
    return found


def create_by_name(name: str) -> Assignor:
    """Create one of Kafka's assignors."""
    short = next((short for short, (_, cls) in KNOWN.items() if name == JAVA_PACKAGE + cls), name)
    if short not in KNOWN:
        raise ConfigError(f"{SETTING}: {unknown('assignor', name, KNOWN)}; there are {', '.join(KNOWN)}")
    module, cls = KNOWN[short]
    assignor: Assignor = getattr(import_module(f"{PACKAGE}.{module}"), cls)()
    return assignor


def create_custom(one: Any) -> Assignor:
    """Return a user-defined assignor: an object, an instance of a class, or a wrapped function."""
    if isinstance(one, type):
        one = one()
    missing = [name for name in METHODS if not hasattr(one, name)]
    if not missing:
        assignor: Assignor = one
        return assignor
    if callable(one) and not hasattr(one, "assign"):
        return wrap_function(one)
    raise ConfigError(f"{SETTING}: {one!r} is not an assignor: it lacks {', '.join(missing)}")


def wrap_function(function: Callable[..., Any]) -> Assignor:
    """Wrap a function with three arguments as an assignor."""
    from ottla.client.consumer.assignors.function import FunctionAssignor

    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(f"{SETTING}: {name} must take three arguments, members, partitions, owned: {error}") from None
    except ValueError:  # the signature of some built-in functions is unknown
        pass
    return FunctionAssignor(function)


def common_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """Return the best rebalance protocol that all assignors support. Raises ConfigError if there is none."""
    supported = {assignor.name: set(assignor.supported_protocols) for assignor in assignors}
    common = set.intersection(*supported.values())
    if not common:
        each = ", ".join(
            f"{name}: {', '.join(p.name for p in sorted(protocols))}" for name, protocols in supported.items()
        )
        raise ConfigError(f"{SETTING}: the assignors have no common rebalance protocol ({each}); choose some that do")
    return max(common)
