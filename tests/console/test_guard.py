"""Access control of the console."""

from __future__ import annotations

import pytest

from ottla.console.guard import ConsoleAccess, check_access
from ottla.loopback import is_loopback

HOME = ConsoleAccess("127.0.0.1", 8080, None)
ABROAD = ConsoleAccess("0.0.0.0", 8080, "s3cret")
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"])
def test_requests_of_the_page_itself_are_accepted(host: str) -> None:
    assert check_access(HOME, "GET", "/api/topics", {"host": host}) is None
    assert check_access(HOME, "POST", "/api/produce", {"host": host, "origin": f"http://{host}", **JSON}) is None


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "127.0.0.1", "127.0.0.1:9999", "127.0.0.1.evil.example:8080", ""]
)
def test_a_host_name_rebound_to_this_machine_is_rejected(host: str) -> None:
    refused = check_access(HOME, "GET", "/api/topics", {"host": host})
    assert refused is not None
    assert refused.status == 403
    assert repr(host) in refused.sentence


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8080", "http://127.0.0.1:9999"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_from_elsewhere_may_not_ask(method: str, origin: str) -> None:
    refused = check_access(HOME, method, "/api/topics", {"host": "127.0.0.1:8080", "origin": origin, **JSON})
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"]
)
def test_requests_that_a_foreign_form_could_send_change_nothing(kind: str) -> None:
    refused = check_access(HOME, "POST", "/api/delete-topic", {"host": "127.0.0.1:8080", "content-type": kind})
    assert refused is not None
    assert refused.status == 415


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer é"}])
def test_a_console_reachable_from_other_machines_requires_the_token(given: dict[str, str]) -> None:
    refused = check_access(ABROAD, "GET", "/api/topics", {"host": "any:8080", **given})
    assert refused is not None
    assert refused.status == 401
    assert check_access(ABROAD, "GET", "/api/topics", {"host": "any:8080", "authorization": "Bearer s3cret"}) is None
    assert check_access(ABROAD, "GET", "/static/console.js", {"host": "any:8080"}) is None


def test_loopback_addresses_are_recognized() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.7", "broker.example")))
