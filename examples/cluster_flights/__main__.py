"""`python -m examples.cluster_flights`: runs the story, counts the flights, and draws the picture."""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from pathlib import Path

from examples.cluster_flights.picture import draw
from examples.cluster_flights.story import Story, counted, play
from examples.flights import data
from examples.flights.replay import records
from ottla import Cluster

AFTER_SECONDS = 5.0
"""The time after a kill in which its longest pause is measured."""


def main(arguments: list[str] | None = None) -> int:
    """Run the example. The exit status is 0 only if each flight is there once."""
    parser = argparse.ArgumentParser(prog="python -m examples.cluster_flights", description=__doc__)
    parser.add_argument("--flights", type=int, default=336_776, help="how many of the year's; default all")
    parser.add_argument("--per-second", type=int, default=30_000, help="how many are sent in a second")
    parser.add_argument("--picture", type=Path, default=Path("out/cluster.png"), help="where to draw it; PNG or SVG")
    options = parser.parse_args(arguments)
    logging.getLogger("ottla").setLevel(logging.ERROR)  # lost nodes are expected
    flights = list(records(data.flights().head(options.flights)))
    begun = time.monotonic()
    with Cluster(3) as cluster:
        print(f"three nodes, ready in {time.monotonic() - begun:.1f} s: {cluster.bootstrap_servers}", flush=True)
        story = play(cluster, flights, options.per_second, lambda line: print(line, flush=True))
        found = counted(cluster)
    draw(story, options.picture)
    for line in prices(story):
        print(line)
    print(f"the picture is in {options.picture}")
    return verdict(Counter(each.value for each in flights), found, story)


def prices(story: Story) -> list[str]:
    """Return a line for each kill with its longest pause of acknowledgements."""
    kills = [(moment, what) for moment, what in story.events if what.startswith("kill")]
    return [
        f"after {what.partition(',')[0]}: {story.longest_pause(moment, moment + AFTER_SECONDS):.2f} s without an acknowledgement at most"
        for moment, what in kills
    ]


def verdict(sent: Counter[bytes], found: Counter[bytes], story: Story) -> int:
    """Print the result. Flights may be identical, so each has to be there as often as it was sent."""
    missing, more = (sent - found).total(), (found - sent).total()
    print(f"{sent.total():,} flights sent, {len(story.failed)} refused, {missing} missing, {more} more than once")
    return 0 if not (missing or more or story.failed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
