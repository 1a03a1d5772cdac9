"""Play one chapter, a step per input line; without a name, print the chapters."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from ottla.errors import OttlaError
from ottla.tour.chapters import CHAPTERS
from ottla.tour.stage import TourStage


def main(names: list[str]) -> None:
    """Play the chapter in `names`, or print all chapters if it is empty."""
    if not names:
        print_json(chapters=[{"name": name, "title": each.title} for name, each in CHAPTERS.items()])
    elif names[0] not in CHAPTERS:
        sys.exit(f"there is no chapter {names[0]!r}: expected one of {', '.join(CHAPTERS)}")
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        play(names[0])


def play(name: str) -> None:
    """Print each step after it happened, and wait for a line; end when the input ends, as when the console has stopped."""
    try:
        with TourStage() as stage:
            for number, step in enumerate(CHAPTERS[name].play(stage), 1):
                print_json(step=number, look=step.look, text=step.text)
                if not sys.stdin.readline():
                    return
        print_json(ended=True)
    except OttlaError as error:
        print_json(error=str(error))


def print_json(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
