"""Calls users' interceptors (KIP-42) one after the other; an error in one is logged and has no other effect."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from inspect import iscoroutinefunction
from typing import Any

from ottla.client.runtime.future import THREAD
from ottla.errors import ConfigError

LOG = logging.getLogger(__name__)


class Interceptors:
    """Interceptors in their order; `methods` are the names they may have, with arguments, for error messages."""

    def __init__(self, interceptors: Iterable[Any], methods: tuple[str, ...], spared: str) -> None:
        self._interceptors = tuple(interceptors)
        self._spared = spared
        for one in self._interceptors:
            check_interceptor(one, methods)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._interceptors)

    def call_all(self, name: str, *arguments: Any) -> None:
        """Call a method of each interceptor that has it."""
        for one in self._interceptors:
            self.call(one, name, *arguments)

    def call(self, interceptor: Any, name: str, *arguments: Any) -> Any:
        """Return the result of the method; None if it does not exist or fails (which is logged)."""
        method = getattr(interceptor, name, None)
        if method is None:
            return None
        try:
            return method(*arguments)
        except BaseException as error:
            if not isinstance(error, Exception) and not THREAD.is_client:
                raise
            LOG.exception("the interceptor %r failed in %s; %s", interceptor, name, self._spared)
            return None


def check_interceptor(interceptor: Any, methods: tuple[str, ...]) -> None:
    """Raise ConfigError for an object that is not an interceptor."""
    found = [getattr(interceptor, method.partition("(")[0], None) for method in methods]
    if isinstance(interceptor, str):
        raise ConfigError(f"interceptor.classes: {interceptor!r} is a name, and none is imported; hand over the object")
    if isinstance(interceptor, type):
        raise ConfigError(f"interceptor.classes: {interceptor!r} is a class; hand over an object of it")
    if not any(map(callable, found)):
        raise ConfigError(f"interceptor.classes: {interceptor!r} has neither {' nor '.join(methods)}")
    if any(map(iscoroutinefunction, found)):
        raise ConfigError(f"interceptor.classes: {interceptor!r} has coroutines; its methods are called, not awaited")
