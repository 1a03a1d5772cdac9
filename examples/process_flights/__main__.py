"""`python -m examples.process_flights [--flights N]`: runs the story, prints the results, and checks them."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import pandas as pd
from rich.console import Console

from examples.flights import data
from examples.flights.replay import records
from examples.process_flights.classify import punctuality
from examples.process_flights.shown import draw, table
from examples.process_flights.story import Outcome, play

PICTURE = Path("out/process-flights.png")


def expected(flights: pd.DataFrame) -> Counter[tuple[str, str]]:
    """Compute the expected results from the columns alone."""
    delays = flights.dep_delay.astype("Int64").astype(object).where(flights.dep_delay.notna(), None)
    return Counter(zip(flights.carrier, map(punctuality, delays), strict=True))


def verdict(outcome: Outcome, flights: pd.DataFrame) -> str:
    """Return a summary if each flight counts once. Raises AssertionError otherwise."""
    wrong = (outcome.counts - expected(flights)) + (expected(flights) - outcome.counts)
    assert not wrong, f"{wrong.total()} flights are lost or twice: {dict(wrong.most_common(5))}"
    assert outcome.letters == 1, f"{outcome.letters} dead letters where one record was no flight"
    return (
        f"{outcome.counts.total():,} flights classified, each once, in {outcome.seconds:.1f} s, though "
        f"{outcome.kills} times a worker was killed; {outcome.letters} record was no flight"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the story, check and print the results."""
    parser = argparse.ArgumentParser(prog="python -m examples.process_flights", description=__doc__)
    parser.add_argument("--flights", type=int, default=None, help="how many, from the first of January on; else all")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where to draw it; PNG or SVG")
    options = parser.parse_args(arguments)
    flights = data.flights().head(options.flights)
    outcome = play(list(records(flights)))
    console, names = Console(), data.airlines()
    console.print(table(outcome.counts, names))
    draw(outcome.counts, names, options.picture)
    console.print(verdict(outcome, flights), f"chart in {options.picture}", sep="\n", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
