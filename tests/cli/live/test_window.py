"""The effects of keys on a picture and the time line below it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from ottla.cli.live.frame import render_lines, rows_of
from ottla.cli.live.time_line import HELD, KEPT, TimeLine
from ottla.cli.live.window import LiveWindow

WIDTH, HEIGHT = 80, 24
CONSOLE = Console(file=io.StringIO(), force_terminal=True, width=WIDTH, height=HEIGHT)


@pytest.fixture
def window() -> LiveWindow:
    return LiveWindow(TimeLine())


def seen(window: LiveWindow, picture_lines: int, height: int = HEIGHT) -> list[str]:
    """The rows of a terminal, as text."""
    picture = render_lines(CONSOLE, Text("\n".join(f"picture {n}" for n in range(picture_lines))), WIDTH)
    rows = rows_of(CONSOLE, window, picture, WIDTH, height)
    return ["".join(segment.text for segment in row).rstrip() for row in rows]


def press(window: LiveWindow, *keys: str) -> None:
    for key in keys:
        window.press(key)


def add_event(window: LiveWindow, first: int, last: int) -> None:
    for n in range(first, last + 1):
        window.time_line.add(f"event {n}.")


def events(rows: list[str]) -> list[str]:
    return [row.strip("│ ") for row in rows if "event" in row]


@pytest.mark.parametrize("picture_lines", [0, 1, 17, 18, 19, 300])
@pytest.mark.parametrize("height", [3, 7, 24, 60])
def test_a_terminal_is_full_whatever_there_is_to_see(window: LiveWindow, picture_lines: int, height: int) -> None:
    add_event(window, 1, 40)
    assert len(seen(window, picture_lines, height)) == height


def test_the_newest_events_are_seen_and_the_picture_from_its_top(window: LiveWindow) -> None:
    add_event(window, 1, 40)
    rows = seen(window, 30)
    assert rows[0] == "picture 0"
    assert events(rows) == ["event 38.", "event 39.", "event 40."]
    assert rows[-1].endswith("38–40/40")


def test_a_short_picture_leaves_its_rows_to_the_time_line(window: LiveWindow) -> None:
    add_event(window, 1, 40)
    assert events(seen(window, 4)) == [f"event {n}." for n in range(24, 41)]


def test_a_scrolled_view_stays_unchanged_while_events_arrive(window: LiveWindow) -> None:
    add_event(window, 1, 40)
    seen(window, 30)
    press(window, "page up", "up")
    before = events(seen(window, 30))
    add_event(window, 41, 50)
    assert events(seen(window, 30)) == before == ["event 35.", "event 36.", "event 37."]
    press(window, "end")
    assert events(seen(window, 30))[-1] == "event 50."
    press(window, "home", "up")
    assert events(seen(window, 30))[0] == "event 1."


def test_tab_has_the_picture_scrolled_and_no_further_than_its_end(window: LiveWindow) -> None:
    seen(window, 30)
    press(window, "tab", "down", "down")
    assert seen(window, 30)[0] == "picture 2"
    press(window, "end", "down")
    assert seen(window, 30)[17] == "picture 29"
    assert seen(window, 30)[-1].endswith("13–30/30")
    assert seen(window, 5)[0] == "picture 0"  # it has become low
    press(window, "tab", "home")
    assert not window.on_picture


def test_a_paused_view_queues_events_and_steps_through_them(window: LiveWindow) -> None:
    add_event(window, 1, 2)
    press(window, "p")
    add_event(window, 3, 6)
    assert events(seen(window, 4)) == ["event 1.", "event 2."]
    assert "PAUSED, 4 waiting" in seen(window, 4)[-1]
    press(window, "s")
    assert events(seen(window, 4))[-1] == "event 3."
    assert window.is_stale
    press(window, "p")
    assert events(seen(window, 4)) == [f"event {n}." for n in range(1, 7)]
    press(window, "s")
    assert window.is_paused


def test_the_time_line_moves_sideways_and_back(window: LiveWindow) -> None:
    window.time_line.add("x" * 16 + "rest")
    press(window, "right")
    assert any(row.strip("│ ") == "rest" for row in seen(window, 4))
    press(window, "left", "left")
    assert any("x" * 16 + "rest" in row for row in seen(window, 4))


def test_help_replaces_the_picture(window: LiveWindow) -> None:
    press(window, "?")
    assert any("PgUp PgDn" in row for row in seen(window, 10))
    press(window, "escape")
    assert seen(window, 10)[0] == "picture 0"


def test_q_ends_the_view_and_unknown_keys_do_nothing(window: LiveWindow) -> None:
    press(window, "x", "F5")
    assert not window.ended
    press(window, "q")
    assert window.ended


def test_memory_is_bounded(window: LiveWindow) -> None:
    add_event(window, 1, KEPT + 10)
    assert window.time_line.place(1)[2] == KEPT
    press(window, "p")
    add_event(window, 1, HELD + 10)
    assert window.time_line.waiting == HELD
