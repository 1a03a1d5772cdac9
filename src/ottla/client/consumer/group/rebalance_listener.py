"""Callbacks for assigned, revoked and lost partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any

from ottla.model import TopicPartition

Callback = Callable[[list[TopicPartition]], Any]
METHODS = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")


class RebalanceListener:
    """Called in the polling thread, within `poll`, `unsubscribe` and `close`.

    Write a class with some of the three methods, or pass functions to `subscribe`. This base class does nothing.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """Handle newly assigned partitions, in addition to those kept. Positions are looked up afterwards."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """Handle revoked partitions. They are still owned until this returns, and offsets may be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """Handle lost partitions.

        Other members may own them already, so nothing can be committed. Calls `on_partitions_revoked` by default.
        """
        return self.on_partitions_revoked(partitions)


class FunctionListener(RebalanceListener):
    """A listener made of functions. Without a function for lost partitions, that for revoked ones is called."""

    def __init__(self, assigned: Callback | None, revoked: Callback | None, lost: Callback | None) -> None:
        self._assigned = assigned
        self._revoked = revoked
        self._lost = lost or revoked

    @property
    def functions(self) -> tuple[Callback | None, ...]:
        return self._assigned, self._revoked, self._lost

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        return self._assigned(partitions) if self._assigned else None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        return self._revoked(partitions) if self._revoked else None

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        return self._lost(partitions) if self._lost else None


def listener_of(given: Any, functions: Sequence[Callback | None]) -> RebalanceListener:
    """Return the listener for the arguments of `subscribe`: an object, functions, or none."""
    if given is None:
        for name, function in zip(METHODS, functions, strict=True):
            if function is not None and not callable(function):
                raise TypeError(f"{name} = {function!r}: must be a function of a list of partitions")
        return FunctionListener(*functions)
    if any(functions):
        raise TypeError("pass a listener or functions, not both")
    if isinstance(given, RebalanceListener):
        return given
    methods = [getattr(given, name, None) for name in METHODS]
    if not any(map(callable, methods)):
        raise TypeError(f"listener = {given!r}: must have {', '.join(METHODS[:2])} or {METHODS[2]}")
    return FunctionListener(*methods)


def refuse_coroutines(listener: RebalanceListener) -> RebalanceListener:
    """Return the listener. Raises TypeError if one of its methods is a coroutine function."""
    methods = (
        listener.functions if isinstance(listener, FunctionListener) else [getattr(listener, name) for name in METHODS]
    )
    for method in methods:
        if iscoroutinefunction(method):
            raise TypeError(f"{method.__qualname__} is a coroutine function: only ottla.aio.Consumer can await it")
    return listener
