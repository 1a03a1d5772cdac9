"""Paths that Kafka Connect does not have: the full status of pipelines, and the served tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ottla._version import __version__
from ottla.pipelines.manager.rest.answers import BYTES, JSON, RestResponse, json_response

if TYPE_CHECKING:
    from ottla.pipelines.manager.rest.api import RestRequest


def root(request: RestRequest) -> RestResponse:
    """Return the version as Connect does; `manager` is the identity of this process."""
    known = {"version": __version__, "commit": "", "kafka_cluster_id": "", "manager": request.identity}
    return json_response(known)


def pipelines(request: RestRequest) -> RestResponse:
    return json_response([facts.to_json() for facts in request.manager.facts()])


def tables(request: RestRequest) -> RestResponse:
    return json_response([table.facts() for table in request.tables.all()])


def value(request: RestRequest) -> RestResponse:
    """Return the value of a table for a key, as it is in the topic."""
    found = request.tables.value(request.names["name"], request.names["key"].encode())
    return RestResponse(200, found, JSON if is_json(found) else BYTES)


def is_json(data: bytes) -> bool:
    """Return True if the data is JSON; only data with a possible first character is parsed."""
    if data[:1] not in b'{["-0123456789tfn':
        return False
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
