"""Producers, consumers and a broker in the threads of gevent, which must go on while one of them waits: `python -m tests.client.process.green_threads`."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

from typing import Any  # noqa: E402 - all else is to find what gevent has put in its place

import gevent  # noqa: E402

import ottla  # noqa: E402

RECORDS = 1000
MEMBERS = 2
IDLE_SECONDS = 1.0
SETTINGS: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}


def write(servers: str) -> None:
    """One transaction."""
    with ottla.Producer(bootstrap_servers=servers, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.send("t", b"%d" % number)
        producer.commit_transaction()


def read(servers: str, read_by_all: list[bytes | None]) -> None:
    """Consume as a group member until all members have all records."""
    with ottla.Consumer(bootstrap_servers=servers, group_id="g", **SETTINGS) as consumer:
        consumer.subscribe(["t"])
        while len(read_by_all) < RECORDS:
            read_by_all += [record.value for record in consumer.poll(0.1)]


def wait(servers: str) -> int:
    """Return how often another thread ran during an empty poll."""
    turns = 0

    def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0)

    with ottla.Consumer(bootstrap_servers=servers, group_id="idle") as consumer:
        consumer.subscribe(["t"])
        worker = gevent.spawn(work)
        consumer.poll(IDLE_SECONDS)
        worker.kill()
    return turns


def main() -> None:
    """Print the number of records read, the number of distinct ones, and whether other threads ran meanwhile."""
    read_by_all: list[bytes | None] = []
    with ottla.Broker(num_partitions=3) as broker:
        servers = broker.bootstrap_servers
        write(servers)
        gevent.joinall([gevent.spawn(read, servers, read_by_all) for _ in range(MEMBERS)], raise_error=True)
        print(len(read_by_all), len(set(read_by_all)), wait(servers) > 1)


if __name__ == "__main__":
    main()
