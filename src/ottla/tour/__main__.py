"""Plays one chapter, a step for each line that comes in; without a name it prints which there are."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from ottla.errors import OttlaError
from ottla.tour.chapters import CHAPTERS
from ottla.tour.stage import Stage


def main(names: list[str]) -> None:
    """`names` are the arguments: none, or one of CHAPTERS."""
    if not names:
        tell(chapters=[{"name": name, "title": each.title} for name, each in CHAPTERS.items()])
    elif names[0] not in CHAPTERS:
        sys.exit(f"there is no chapter {names[0]!r}; choose one of {', '.join(CHAPTERS)}")
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        play(names[0])


def play(name: str) -> None:
    """Tell each step when it has happened, and go on when a line comes; without one, as when the console is gone, it ends."""
    try:
        with Stage() as stage:
            for number, step in enumerate(CHAPTERS[name].play(stage), 1):
                tell(step=number, look=step.look, text=step.text)
                if not sys.stdin.readline():
                    return
        tell(ended=True)
    except OttlaError as error:
        tell(error=str(error))


def tell(**told: Any) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
