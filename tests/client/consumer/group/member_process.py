"""A member in a process of its own, which can be stopped, killed and interrupted; it tells what it hears on its output.

python member_process.py ADDRESS GROUP TOPIC [do=poll|commit|close] name=value …

It polls, or, once it has partitions, commits for ever, or closes when it is told to by a line of its input.
"""

from __future__ import annotations

import logging
import sys

from ottla import Consumer


def say(what: object) -> None:
    print(what, flush=True)


def main(address: str, group: str, topic: str, *settings: str) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="log %(message)s")
    given = dict(setting.split("=", 1) for setting in settings)
    act = ACTS[given.pop("do", "poll")]
    with Consumer(given, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(
            [topic],
            on_assigned=lambda tps: say(f"assigned {len(tps)}"),
            on_revoked=lambda tps: say(f"revoked {len(tps)}"),
            on_lost=lambda tps: say(f"lost {len(tps)}"),
        )
        say("subscribed")
        act(consumer)


def poll(consumer: Consumer) -> None:
    while True:
        for record in consumer.poll(60):
            say(f"record {record.partition} {record.offset}")


def commit(consumer: Consumer) -> None:
    while not consumer.assignment():
        consumer.poll(0.1)
    say("committing")
    while True:
        consumer.commit(dict.fromkeys(consumer.assignment(), 0))
        consumer.poll(0)


def close(consumer: Consumer) -> None:
    while not consumer.assignment():
        consumer.poll(0.1)
    say("ready")
    sys.stdin.readline()
    say("closing")
    consumer.close()


ACTS = {"poll": poll, "commit": commit, "close": close}


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        say("interrupted")
