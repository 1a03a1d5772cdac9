"""A member in its own process, which can be stopped, killed and interrupted; it prints its events.

python member_process.py ADDRESS GROUP TOPIC [do=poll|commit|close] name=value …

It polls, or, once it has partitions, commits in a loop, or closes after a line on its input.
"""

from __future__ import annotations

import logging
import sys

from ottla import Consumer


def print_event(what: object) -> None:
    print(what, flush=True)


def main(address: str, group: str, topic: str, *settings: str) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="log %(message)s")
    given = dict(setting.split("=", 1) for setting in settings)
    act = ACTS[given.pop("do", "poll")]
    with Consumer(given, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(
            [topic],
            on_assigned=lambda tps: print_event(f"assigned {len(tps)}"),
            on_revoked=lambda tps: print_event(f"revoked {len(tps)}"),
            on_lost=lambda tps: print_event(f"lost {len(tps)}"),
        )
        print_event("subscribed")
        act(consumer)


def poll(consumer: Consumer) -> None:
    while True:
        for record in consumer.poll(60):
            print_event(f"record {record.partition} {record.offset}")


def commit(consumer: Consumer) -> None:
    while not consumer.assignment():
        consumer.poll(0.1)
    print_event("committing")
    while True:
        consumer.commit(dict.fromkeys(consumer.assignment(), 0))
        consumer.poll(0)


def close(consumer: Consumer) -> None:
    while not consumer.assignment():
        consumer.poll(0.1)
    print_event("ready")
    sys.stdin.readline()
    print_event("closing")
    consumer.close()


ACTS = {"poll": poll, "commit": commit, "close": close}


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        print_event("interrupted")
