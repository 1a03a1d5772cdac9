"""What a mirror tells while it works, on standard error: what was done, and how far it has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ottla.escaping import escape_controls, escape_controls_in_lines

if TYPE_CHECKING:
    from ottla.mirror.group_plan import GroupPlan
    from ottla.mirror.progress import Standing

TERMINAL_SECONDS, FILE_SECONDS = 0.25, 10.0
"""How often the standing is told: in a terminal in place, elsewhere as one more line."""


class MirrorLines:
    """Use it with `with`: the line that is drawn in place ends there."""

    def __init__(self) -> None:
        self._in_place = sys.stderr.isatty()
        self._pause = TERMINAL_SECONDS if self._in_place else FILE_SECONDS
        self._told_at = time.monotonic()
        self._drawn = False

    def __enter__(self) -> MirrorLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def tell(self, text: str) -> None:
        self._clear()
        print(escape_controls_in_lines(text), file=sys.stderr, flush=True)

    def show(self, standing: Standing) -> None:
        """Not more often than anybody reads."""
        now = time.monotonic()
        if now - self._told_at < self._pause:
            return
        self._told_at = now
        if not self._in_place:
            self.tell(standing.text)
            return
        sys.stderr.write(f"\r\x1b[K{standing.text}")
        sys.stderr.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            self._drawn = False


def group_lines(groups: Mapping[str, GroupPlan]) -> Iterator[str]:
    """What groups may expect that move over now."""
    for name, plan in groups.items():
        again = f"reads at most {plan.repeats} offsets again" if plan.repeats else "reads on where it was"
        yield f"group {escape_controls(name)} {again}"
