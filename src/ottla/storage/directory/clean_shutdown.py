"""The mark that a clean shutdown leaves, with the broker's epoch: Kafka's `.kafka_cleanshutdown` (KIP-966)."""

from __future__ import annotations

from pathlib import Path

from ottla.storage.files.regular_file import read_whole

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
NO_EPOCH = -1
"""The epoch of a broker that is not registered with a controller."""


def clean_shutdown_text(broker_epoch: int) -> str:
    """Return the text of the file."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'


def epoch_in(mark: Path) -> int:
    """Return the broker epoch in the file; -1 if it has none, as before Kafka 3.8."""
    import json  # only needed after a clean shutdown

    try:
        epoch = json.loads(read_whole(mark))["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return NO_EPOCH
    return epoch if isinstance(epoch, int) else NO_EPOCH
