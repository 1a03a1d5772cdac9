"""Questions to servers of the web, with patience for what passes, and sentences for what does not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import urllib3
from pydantic import AfterValidator

from ottla.errors import OttlaError
from ottla.pipelines.address import check_port, shown

TRIES = 3
PASSING = (429, 502, 503, 504)
"""Answers after which to ask again, when the server says so or after a moment."""


REFUSED = (400, 413, 422)
"""Answers about the content of a request, which stay the same when it is sent again."""


class HttpError(OttlaError):
    """A server did not answer, or refused."""


class RefusedContentError(HttpError):
    """A server refused what a request contains."""


def web_address(text: str) -> str:
    """ValueError for what is no address."""
    if not text.startswith(("http://", "https://", "${")):
        raise ValueError(f"{text!r} is no address of the web; write such as `https://host/path`")
    check_port(text)
    return text


WebUrl = Annotated[str, AfterValidator(web_address)]
"""A field of a pipeline's source or sink."""


@cache
def pool() -> urllib3.PoolManager:
    """The connections of this process."""
    return urllib3.PoolManager()


def call(
    method: str, url: str, headers: Mapping[str, str], timeout_ms: int, *, also: tuple[int, ...] = (), **more: Any
) -> Any:
    """The answer, if it is one of success or of `also`; HttpError otherwise."""
    retry = urllib3.Retry(
        total=TRIES,
        status_forcelist=PASSING,
        backoff_factor=0.2,
        allowed_methods=None,
        raise_on_status=False,
        redirect=5,
    )
    where = shown(url)
    try:
        answer: Any = pool().request(
            method, url, headers=dict(headers), timeout=timeout_ms / 1000, retries=retry, **more
        )
    except urllib3.exceptions.HTTPError as error:
        raise HttpError(f"{where} does not answer: {reason(error)}") from None
    if not (200 <= answer.status < 300 or answer.status in also):
        said = " ".join(answer.data[:200].decode(errors="replace").split())
        kind = RefusedContentError if answer.status in REFUSED else HttpError
        raise kind(f"{where} answers {answer.status} {answer.reason or ''}: {said or 'nothing more'}")
    return answer


def reason(error: Exception) -> str:
    """The innermost that says something, without the address and its parameters."""
    inner = getattr(error, "reason", None)
    text = str(inner if inner is not None else error)
    return text.rpartition(": ")[2] or type(error).__name__
