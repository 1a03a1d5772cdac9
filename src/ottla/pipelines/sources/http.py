"""`type: http`: an address that is asked again and again, by a cursor or for as long as it says that nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ottla.pipelines.address import shown
from ottla.pipelines.http_calls import WebUrl, call
from ottla.pipelines.sources.polling import PollingError, PollingSource
from ottla.pipelines.sources.written_schema import checked


class HttpSource(PollingSource):
    """JSON from the web. With a cursor each answer has what comes after it; without, an answer is all there is, and it is read
    again when its ETag, or when it was changed, is another.
    """

    type: Literal["http"]
    url: WebUrl
    """What is asked, by GET."""
    schema_text: Annotated[str, AfterValidator(checked)] = Field(alias="schema")
    """The columns, such as `id bigint, name string`; fields that are not named are left out."""
    headers: dict[str, str] = {}
    """What is sent besides, such as `Authorization: Bearer ${env:TOKEN}`."""
    records_path: str = Field(default="", alias="records.path")
    """Where the list of objects is in the answer, such as `data.items`; by default the answer is the list."""
    cursor_parameter: str | None = Field(default=None, alias="cursor.parameter")
    """The parameter that says after what to go on; left out of the first question."""
    cursor_field: str | None = Field(default=None, alias="cursor.field")
    """The field of the last object that is the next cursor."""
    cursor_path: str | None = Field(default=None, alias="cursor.path")
    """Where the next cursor is in the answer, such as `next`; instead of `cursor.field`."""
    timeout_ms: int = Field(default=30_000, ge=1, alias="timeout.ms")
    """How long an answer may take."""

    @model_validator(mode="after")
    def cursor_is_whole(self) -> HttpSource:
        ways = [way for way in (self.cursor_field, self.cursor_path) if way is not None]
        if len(ways) != (self.cursor_parameter is not None):
            raise ValueError("cursor.parameter goes with one of cursor.field and cursor.path; give both or none")
        return self

    def describe(self) -> str:
        return shown(self.url)

    def columns(self) -> str:
        return self.schema_text

    def poll(self, position: Any) -> tuple[Sequence[Any], Any]:
        return self.by_cursor(position) if self.cursor_parameter is not None else self.by_etag(position or {})

    def by_cursor(self, position: Any) -> tuple[Sequence[Any], Any]:
        fields = {} if position is None else {str(self.cursor_parameter): str(position)}
        answer = call("GET", self.url, self.headers, self.timeout_ms, fields=fields)
        body = self.parsed(answer.data)
        records = self.records(body)
        if not records:
            return [], position
        after = at_path(body, self.cursor_path) if self.cursor_path is not None else records[-1].get(self.cursor_field)
        if after is None or after == position:
            where = self.cursor_path or self.cursor_field
            raise PollingError(
                f"{self.describe()}: the answer has {len(records)} objects and no next cursor in {where}; correct where it is"
            )
        return records, after

    def by_etag(self, known: Mapping[str, Any]) -> tuple[Sequence[Any], Any]:
        conditions = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
        asked = {name: str(known[header]) for name, header in conditions.items() if known.get(header)}
        answer = call("GET", self.url, {**self.headers, **asked}, self.timeout_ms, also=(304,))
        if answer.status == 304:
            return [], known
        now = {header: answer.headers[header] for header in conditions.values() if answer.headers.get(header)}
        if not now:
            raise PollingError(
                f"{self.describe()}: the answer has neither ETag nor Last-Modified, by which a change could be seen; read it by a cursor"
            )
        return ([], known) if now == known else (self.records(self.parsed(answer.data)), now)

    def parsed(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise PollingError(f"{self.describe()}: the answer is no JSON: {error}") from None

    def records(self, body: Any) -> list[Any]:
        found = at_path(body, self.records_path)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            where = f"at {self.records_path!r}" if self.records_path else "in the answer"
            raise PollingError(
                f"{self.describe()}: there is no list of objects {where}; set records.path to where it is"
            )
        return found


def at_path(body: Any, path: str | None) -> Any:
    """What is at a path of names; None where nothing is."""
    for name in (path or "").split(".") if path else ():
        body = body.get(name) if isinstance(body, dict) else None
    return body
