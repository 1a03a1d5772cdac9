"""Logs of drawn records, and all that is known of one."""

from __future__ import annotations

import random
from typing import Any

from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, batch
from tests.storage.producing import end, send

INTERVAL = 200
SMALL = LogConfig(index_interval_bytes=INTERVAL, segment_bytes=4000)


def write(log: Log, chance: random.Random) -> None:
    """Records of producers of all kinds, in the terms of several leaders."""
    epoch, sequences = chance.randrange(2), dict.fromkeys(range(4), 0)
    for _ in range(chance.randrange(60)):
        epoch += chance.random() < 0.05
        producer = chance.randrange(6)
        if producer not in sequences:
            log.append(
                batch(b"x" * chance.randrange(80), timestamps=[NOW + chance.randrange(99)]),
                leader_epoch=epoch,
                now_ms=NOW,
            )
            continue
        transactional = producer == 3
        send(log, producer, sequences[producer], transactional=transactional, leader_epoch=epoch)
        sequences[producer] += 1
        if transactional and chance.random() < 0.5:
            end(log, producer, commit=chance.random() < 0.5, leader_epoch=epoch)


def state(log: Log) -> Any:
    """All that a log knows."""
    known = {id_: (entry.epoch, list(entry.batches)) for id_, entry in log.producers.entries.items()}
    marks = [
        (each.size, each.indexes.bytes_since_entry, each.indexes.max_timestamp, each.indexes.max_timestamp_offset)
        for each in log.segments
    ]
    loaded = [each.load_indexes() for each in log.segments]
    indexes = [(list(each.offsets._offsets), list(each.times._timestamps)) for each in loaded]
    return (
        log.end_offset,
        known,
        log.producers.open,
        log.epochs.entries,
        marks,
        indexes,
        log.find_aborted(0, 0, log.end_offset),
    )
