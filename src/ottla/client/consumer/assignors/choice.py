"""The assignors that `partition.assignment.strategy` names.

A name is Kafka's short one or its Java class; an object has what `Assignor` asks for; a function of three arguments is
the user's own assignor, see `assignors/function.py`.
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
"""Where each assignor lives: short name, module, class."""
DEFAULT = ("range", "cooperative-sticky")
"""As Kafka's: range it is, and each member is ready for cooperative sticky once range is taken out of the setting."""
JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
METHODS = ("name", "supported_protocols", "version", "subscription_user_data", "assign", "on_assignment")


def choose_assignors(chosen: Sequence[Any]) -> Mapping[str, Assignor]:
    """The assignors by name, the preferred one first; ConfigError for one there is not, or two of a name."""
    if not chosen:
        raise ConfigError(f"{SETTING} is empty: name an assignor, such as range")
    found: dict[str, Assignor] = {}
    for one in chosen:
        assignor = named(one) if isinstance(one, str) else handed_over(one)
        if assignor.name in found:
            raise ConfigError(f"{SETTING} has two assignors of the name {assignor.name!r}; leave one out or rename it")
        found[assignor.name] = assignor
    return found


def named(name: str) -> Assignor:
    """A new assignor of one of Kafka's kinds."""
    short = next((short for short, (_, cls) in KNOWN.items() if name == JAVA_PACKAGE + cls), name)
    if short not in KNOWN:
        raise ConfigError(f"{SETTING}: {unknown('assignor', name, KNOWN)}; there are {', '.join(KNOWN)}")
    module, cls = KNOWN[short]
    assignor: Assignor = getattr(import_module(f"{PACKAGE}.{module}"), cls)()
    return assignor


def handed_over(one: Any) -> Assignor:
    """An assignor of the user's own: an object, its class, or a function."""
    if isinstance(one, type):
        one = one()
    missing = [name for name in METHODS if not hasattr(one, name)]
    if not missing:
        assignor: Assignor = one
        return assignor
    if callable(one) and not hasattr(one, "assign"):
        return of_function(one)
    raise ConfigError(f"{SETTING}: {one!r} is no assignor: it has no {', '.join(missing)}")


def of_function(function: Callable[..., Any]) -> Assignor:
    """An assignor of a function that can be called with three arguments."""
    from ottla.client.consumer.assignors.function import FunctionAssignor

    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(f"{SETTING}: {name} must take three arguments, members, partitions, owned: {error}") from None
    except ValueError:  # of some built-in functions Python does not tell
        pass
    return FunctionAssignor(function)


def common_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """The best rebalance protocol that all of them are right for; ConfigError when there is none."""
    supported = {assignor.name: set(assignor.supported_protocols) for assignor in assignors}
    common = set.intersection(*supported.values())
    if not common:
        each = ", ".join(
            f"{name}: {', '.join(p.name for p in sorted(protocols))}" for name, protocols in supported.items()
        )
        raise ConfigError(f"{SETTING}: no way of rebalancing is common to all of them ({each}); take some that have")
    return max(common)
