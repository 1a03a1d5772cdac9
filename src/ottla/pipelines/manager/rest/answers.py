"""Answers, and the errors among them, in the form of Kafka Connect."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

JSON = "application/json"
BYTES = "application/octet-stream"


class Answer(NamedTuple):
    """What goes back: a status, and a body of its kind."""

    status: int
    body: bytes = b""
    kind: str = JSON


def in_json(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value, ensure_ascii=False).encode())


class RestError(Exception):
    """What cannot be answered, with HTTP's number for it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

    def answer(self) -> Answer:
        return in_json({"error_code": self.status, "message": str(self)}, self.status)


def not_found(sentence: str) -> RestError:
    return RestError(404, sentence)
