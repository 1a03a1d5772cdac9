"""The error of a schema registry."""

from __future__ import annotations

from ottla.errors import OttlaError


class SchemaRegistryError(OttlaError):
    """A request to the schema registry failed.

    `http_status_code` is the status of the response, and `error_code` the registry's own number. Both are -1 if no
    registry answered.
    """

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(http_status_code, error_code, error_message)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message

    def __str__(self) -> str:
        if self.http_status_code < 0:
            return self.error_message
        return f"{self.error_message} (HTTP status code {self.http_status_code}, SR code {self.error_code})"
