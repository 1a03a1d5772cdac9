"""`type: http`: an address that is polled, with a cursor or until its content changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ottla.pipelines.address import without_secrets
from ottla.pipelines.http_calls import WebUrl, send_request
from ottla.pipelines.sources.polling import PollingError, PollingSource
from ottla.pipelines.sources.written_schema import checked


class HttpSource(PollingSource):
    """JSON from the web.

    With a cursor, each response has the position of the next one. Without, a response has all rows, and is read again
    when its ETag or Last-Modified changes.
    """

    type: Literal["http"]
    url: WebUrl
    """The address, requested by GET."""
    schema_text: Annotated[str, AfterValidator(checked)] = Field(alias="schema")
    """The columns, for example `id bigint, name string`; other fields are ignored."""
    headers: dict[str, str] = {}
    """Request headers, for example `Authorization: Bearer ${env:TOKEN}`."""
    records_path: str = Field(default="", alias="records.path")
    """The path of the list of objects in the response, for example `data.items`; by default the response is the list."""
    cursor_parameter: str | None = Field(default=None, alias="cursor.parameter")
    """The query parameter with the cursor; the first request has none."""
    cursor_field: str | None = Field(default=None, alias="cursor.field")
    """The field of the last object that is the next cursor."""
    cursor_path: str | None = Field(default=None, alias="cursor.path")
    """The path of the next cursor in the response, for example `next`; instead of `cursor.field`."""
    timeout_ms: int = Field(default=30_000, ge=1, alias="timeout.ms")
    """The timeout of a response."""

    @model_validator(mode="after")
    def cursor_is_whole(self) -> HttpSource:
        ways = [way for way in (self.cursor_field, self.cursor_path) if way is not None]
        if len(ways) != (self.cursor_parameter is not None):
            raise ValueError("cursor.parameter needs either cursor.field or cursor.path; give both or none")
        return self

    def describe(self) -> str:
        return without_secrets(self.url)

    def columns(self) -> str:
        return self.schema_text

    def poll(self, position: Any) -> tuple[Sequence[Any], Any]:
        return self.by_cursor(position) if self.cursor_parameter is not None else self.by_etag(position or {})

    def by_cursor(self, position: Any) -> tuple[Sequence[Any], Any]:
        fields = {} if position is None else {str(self.cursor_parameter): str(position)}
        answer = send_request("GET", self.url, self.headers, self.timeout_ms, fields=fields)
        body = self.parse_body(answer.data)
        records = self.records(body)
        if not records:
            return [], position
        after = at_path(body, self.cursor_path) if self.cursor_path is not None else records[-1].get(self.cursor_field)
        if after is None or after == position:
            where = self.cursor_path or self.cursor_field
            raise PollingError(
                f"{self.describe()}: the response has {len(records)} objects and no next cursor in {where}; correct this path"
            )
        return records, after

    def by_etag(self, known: Mapping[str, Any]) -> tuple[Sequence[Any], Any]:
        conditions = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
        validators = {name: str(known[header]) for name, header in conditions.items() if known.get(header)}
        answer = send_request("GET", self.url, {**self.headers, **validators}, self.timeout_ms, also=(304,))
        if answer.status == 304:
            return [], known
        now = {header: answer.headers[header] for header in conditions.values() if answer.headers.get(header)}
        if not now:
            raise PollingError(
                f"{self.describe()}: the response has neither ETag nor Last-Modified, so changes cannot be detected; use a cursor"
            )
        return ([], known) if now == known else (self.records(self.parse_body(answer.data)), now)

    def parse_body(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise PollingError(f"{self.describe()}: the response is not JSON: {error}") from None

    def records(self, body: Any) -> list[Any]:
        found = at_path(body, self.records_path)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            where = f"at {self.records_path!r}" if self.records_path else "in the response"
            raise PollingError(f"{self.describe()}: there is no list of objects {where}; set records.path to its path")
        return found


def at_path(body: Any, path: str | None) -> Any:
    """Return the value at a path of names; None if there is none."""
    for name in (path or "").split(".") if path else ():
        body = body.get(name) if isinstance(body, dict) else None
    return body
