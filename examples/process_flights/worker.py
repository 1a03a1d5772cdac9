"""A processor in a process of its own: `python -m examples.process_flights.worker ADDRESS NAME`."""

from __future__ import annotations

import logging
import sys

import ottla
from examples.process_flights.classify import departure

GROUP = "punctuality"


def work(servers: str, name: str) -> None:
    """Classify flights until SIGTERM."""
    with (
        ottla.Consumer(
            bootstrap_servers=servers,
            group_id=GROUP,
            group_instance_id=name,  # a restarted worker receives its partitions at once
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ) as consumer,
        ottla.Producer(bootstrap_servers=servers, transactional_id=f"{GROUP}-{name}") as producer,
    ):
        ottla.process(
            consumer, producer, departure, topics=["flights"], to="departures", dead_letter_topic="no-flights"
        )


if __name__ == "__main__":
    logging.getLogger("ottla").setLevel(logging.ERROR)  # moving partitions are expected
    work(*sys.argv[1:])
