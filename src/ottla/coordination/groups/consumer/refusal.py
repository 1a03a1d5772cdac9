"""The rejection of a member's request."""

from __future__ import annotations


class RequestRejected(Exception):
    """An error code and a message. The draft of the decision that raises it is discarded."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
