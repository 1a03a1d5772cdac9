"""Why a request of a member is not done: what it is told."""

from __future__ import annotations


class Refused(Exception):
    """An error code and a sentence; the draft of whoever raises it is thrown away."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
