"""`python -m examples.rebalance`: runs the story twice, and prints the events."""

from __future__ import annotations

import argparse
import logging
from importlib.util import find_spec
from pathlib import Path

from examples.rebalance.happening import lines
from examples.rebalance.story import play_both


def main(arguments: list[str] | None = None) -> int:
    """Run the story, print the events and draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m examples.rebalance", description=__doc__)
    parser.add_argument("--picture", type=Path, default=Path("rebalance.png"), help="where to draw it; PNG or SVG")
    parser.add_argument(
        "--max-poll-interval-ms", type=int, default=1000, help="how long a member may stay away from poll"
    )
    options = parser.parse_args(arguments)
    logging.getLogger("ottla").setLevel(logging.ERROR)  # a member that sleeps too long is expected
    stories = play_both(options.max_poll_interval_ms)
    for told in stories:
        print(f"\n== {told.assignor} ==")
        print("\n".join(lines(told.happenings)))
    if find_spec("matplotlib") is None:
        print("\nno picture without matplotlib: pip install matplotlib")
        return 0
    from examples.rebalance.picture import draw

    draw(stories, options.picture)
    print(f"\nthe picture is in {options.picture}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
