"""Who hears that partitions come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any

from ottla.model import TopicPartition

Callback = Callable[[list[TopicPartition]], Any]
METHODS = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")


class RebalanceListener:
    """Told in the thread that polls, from within `poll`, `unsubscribe` and `close`.

    Write a class with some of the three methods, or hand three functions to `subscribe`; this one does nothing.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are this member's from now on, beside those it kept; positions are looked up after this."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These are given up; they still are this member's until this returns, and offsets may be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These are gone, and may be another member's already: there is nothing to commit. By default as revoked."""
        return self.on_partitions_revoked(partitions)


class Functions(RebalanceListener):
    """A listener of functions; without one for lost, the one for revoked is called."""

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
    """The listener that was handed to `subscribe` as an object, as functions, or not at all."""
    if given is None:
        for name, function in zip(METHODS, functions, strict=True):
            if function is not None and not callable(function):
                raise TypeError(f"{name} = {function!r}: must be a function of a list of partitions")
        return Functions(*functions)
    if any(functions):
        raise TypeError("give a listener or functions, not both")
    if isinstance(given, RebalanceListener):
        return given
    methods = [getattr(given, name, None) for name in METHODS]
    if not any(map(callable, methods)):
        raise TypeError(f"listener = {given!r}: must have {', '.join(METHODS[:2])} or {METHODS[2]}")
    return Functions(*methods)


def refuse_coroutines(listener: RebalanceListener) -> RebalanceListener:
    """The listener, if its methods are done when they return; TypeError for one that would have to be awaited."""
    methods = listener.functions if isinstance(listener, Functions) else [getattr(listener, name) for name in METHODS]
    for method in methods:
        if iscoroutinefunction(method):
            raise TypeError(f"{method.__qualname__} is a coroutine function: only ottla.aio.Consumer can await it")
    return listener
