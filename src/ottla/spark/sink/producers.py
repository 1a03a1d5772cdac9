"""One producer for each configuration and worker process: tasks follow each other there, and connecting costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ottla.client.producer import Producer

_producers: dict[tuple[tuple[str, Any], ...], Producer] = {}


@contextmanager
def cached_producer(settings: Mapping[str, Any]) -> Iterator[Producer]:
    """The producer of these settings; one that a task failed with is closed and not used again."""
    key = tuple(sorted(settings.items()))
    if key not in _producers:
        _producers[key] = Producer(dict(settings))
    try:
        yield _producers[key]
    except BaseException:
        _producers.pop(key).close(0)
        raise
