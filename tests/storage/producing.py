"""Batches of producers with ids, and the ends of their transactions."""

from __future__ import annotations

from ottla.records.batch import parse_header, seal
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.producers.producer_entry import Origin
from tests.storage.batches import NOW


def produced(
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    timestamp: int = NOW,
) -> bytes:
    """A batch of `count` records from a sequence on."""
    builder = BatchBuilder()
    for number in range(count):
        builder.append(timestamp, None, b"%d" % number)
    batch = builder.build(producer_id, epoch, 0, transactional)
    return seal(parse_header(batch)._replace(base_sequence=sequence), batch[61:])


def send(
    log: Log,
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    leader_epoch: int = 0,
    now: int = NOW,
) -> Appended:
    """Append such a batch."""
    data = produced(producer_id, sequence, count, epoch=epoch, transactional=transactional)
    return log.append(data, leader_epoch=leader_epoch, now_ms=now)


def end(
    log: Log,
    producer_id: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    leader_epoch: int = 0,
) -> Appended:
    """Append the end of a transaction."""
    marker = EndMarker(ControlType.COMMIT if commit else ControlType.ABORT, coordinator_epoch)
    return log.append(
        encode_end_marker(producer_id, epoch, marker, NOW),
        leader_epoch=leader_epoch,
        now_ms=NOW,
        origin=Origin.COORDINATOR,
        transaction_version=transaction_version,
    )
