"""Batches as they come to a log, looked at before they are let in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model import Buffer
from ottla.records.batch import BatchHeader, iter_headers, verify_all
from ottla.records.end_marker import EndMarker, end_markers
from ottla.storage.batch_check import check_format, check_settings
from ottla.storage.log_config import LogConfig
from ottla.storage.producer_entry import Origin
from ottla.storage.record_check import examined, needs_look


class Incoming(NamedTuple):
    """Batches that are whole and of a form that the log takes."""

    view: memoryview
    """Their bytes, which may be stamped in place."""
    headers: list[BatchHeader]
    markers: Sequence[EndMarker | None]
    """One for each header, where there may be any."""


def checked(data: Buffer, config: LogConfig, origin: Origin, now_ms: int) -> Incoming:
    """The batches in `data`; CorruptRecordError for damaged bytes, KafkaError for what the settings refuse."""
    check_format(data)
    view = writable(data)
    headers = verify_all(view, from_client=origin is Origin.CLIENT)
    for header in headers:
        check_settings(header, config)
    if origin is not Origin.CLIENT:
        return Incoming(view, headers, end_markers(view, headers))
    if needs_look(headers, config, now_ms):
        view = writable(examined(view, headers, config, now_ms))
        headers = [header for _, header in iter_headers(view)]
    return Incoming(view, headers, ())


def writable(data: Buffer) -> memoryview:
    """The bytes where they can be stamped, copied if they must be."""
    view = memoryview(data)
    return memoryview(bytearray(view)) if view.readonly else view
