"""A processor in a process of its own, to be killed: `python -m tests.client.process.worker ADDRESS`."""

from __future__ import annotations

import logging
import sys

import ottla


def main(servers: str) -> None:
    """Copy `in` to `out`, exactly once."""
    logging.getLogger("ottla").setLevel(logging.CRITICAL)
    consumer = ottla.Consumer(
        bootstrap_servers=servers,
        group_id="copiers",
        group_instance_id="one",  # so that whoever comes after it need not wait until it is missed
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=200,
    )
    producer = ottla.Producer(bootstrap_servers=servers, transactional_id="copier")
    with consumer, producer:
        ottla.process(consumer, producer, lambda record: record.value, topics=["in"], to="out", commit_interval_ms=10)


if __name__ == "__main__":
    main(sys.argv[1])
