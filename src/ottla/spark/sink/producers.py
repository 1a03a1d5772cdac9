"""Keeps one producer for each configuration and worker process, because connecting takes time and a worker runs many tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ottla.client.producer import Producer

_producers: dict[tuple[tuple[str, Any], ...], Producer] = {}


@contextmanager
def cached_producer(settings: Mapping[str, Any]) -> Iterator[Producer]:
    """Yield the producer for these settings. If the block fails, the producer is closed and not used again."""
    key = tuple(sorted(settings.items()))
    if key not in _producers:
        _producers[key] = Producer(dict(settings))
    try:
        yield _producers[key]
    except BaseException:
        _producers.pop(key).close(0)
        raise
