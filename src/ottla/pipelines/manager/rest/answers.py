"""Responses, and error responses in Kafka Connect's format."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

JSON = "application/json"
BYTES = "application/octet-stream"


class RestResponse(NamedTuple):
    """A response: status, body and content type."""

    status: int
    body: bytes = b""
    kind: str = JSON


def json_response(value: Any, status: int = 200) -> RestResponse:
    return RestResponse(status, json.dumps(value, ensure_ascii=False).encode())


class RestError(Exception):
    """A request fails with this HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

    def to_response(self) -> RestResponse:
        return json_response({"error_code": self.status, "message": str(self)}, self.status)


def not_found_error(sentence: str) -> RestError:
    return RestError(404, sentence)
