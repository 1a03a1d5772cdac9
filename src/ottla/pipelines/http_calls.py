"""Requests to web servers: temporary errors are retried, others are raised with a description."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import urllib3
from pydantic import AfterValidator

from ottla.errors import OttlaError
from ottla.pipelines.address import check_port, without_secrets

TRIES = 3
PASSING = (429, 502, 503, 504)
"""Status codes after which a request is repeated, after the server's Retry-After or a short backoff."""


REFUSED = (400, 413, 422)
"""Status codes about the content of a request: the same request fails again."""


class HttpError(OttlaError):
    """A server did not answer, or rejected a request."""


class RefusedContentError(HttpError):
    """A server rejected the content of a request."""


def web_address(text: str) -> str:
    """Return the address; ValueError if it is not an address of the web."""
    if not text.startswith(("http://", "https://", "${")):
        raise ValueError(f"{text!r} is not a web address; write for example `https://host/path`")
    check_port(text)
    return text


WebUrl = Annotated[str, AfterValidator(web_address)]
"""The type of a field of a source or sink that is a web address."""


@cache
def connection_pool() -> urllib3.PoolManager:
    """Return the connections of this process."""
    return urllib3.PoolManager()


def send_request(
    method: str, url: str, headers: Mapping[str, str], timeout_ms: int, *, also: tuple[int, ...] = (), **more: Any
) -> Any:
    """Return the response if its status is a success or in `also`; HttpError otherwise."""
    retry = urllib3.Retry(
        total=TRIES,
        status_forcelist=PASSING,
        backoff_factor=0.2,
        allowed_methods=None,
        raise_on_status=False,
        redirect=5,
    )
    where = without_secrets(url)
    try:
        answer: Any = connection_pool().request(
            method, url, headers=dict(headers), timeout=timeout_ms / 1000, retries=retry, **more
        )
    except urllib3.exceptions.HTTPError as error:
        raise HttpError(f"{where} did not answer: {find_reason(error)}") from None
    if not (200 <= answer.status < 300 or answer.status in also):
        body = " ".join(answer.data[:200].decode(errors="replace").split())
        kind = RefusedContentError if answer.status in REFUSED else HttpError
        raise kind(f"{where} answered {answer.status} {answer.reason or ''}: {body or 'with an empty body'}")
    return answer


def find_reason(error: Exception) -> str:
    """Return the innermost reason that has a text, without the address and its parameters."""
    inner = getattr(error, "reason", None)
    text = str(inner if inner is not None else error)
    return text.rpartition(": ")[2] or type(error).__name__
