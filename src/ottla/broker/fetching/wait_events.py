"""What the purgatory tells whoever looks into a broker.

Values only; the text of each is a line for people.
"""

from __future__ import annotations

from typing import NamedTuple


class WaitBegun(NamedTuple):
    """A request cannot be answered yet."""

    api: str
    client_id: str
    correlation_id: int
    places: tuple[str, ...]
    """What it waits for: partitions, or a session of them."""
    missing_bytes: int

    def __str__(self) -> str:
        for_what = f"for {self.missing_bytes} bytes more" if self.missing_bytes > 0 else "to be committed"
        return f"{self.api} of {self.client_id or 'this broker'} waits {for_what} of {', '.join(self.places)}"


class WaitOver(NamedTuple):
    """It is looked at again: it may be answered, or wait anew."""

    api: str
    client_id: str
    correlation_id: int
    places: tuple[str, ...]
    reached: bool
    """Whether what it waited for has come; otherwise its time is over."""

    def __str__(self) -> str:
        why = "what it waited for is there" if self.reached else "its time is over"
        return f"{self.api} of {self.client_id or 'this broker'} waits no more for {', '.join(self.places)}: {why}"
