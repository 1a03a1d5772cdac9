"""Connections that wait for a token, and their failure if there is none."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from ottla import Admin
from ottla.client.admin.config import read_admin_settings
from ottla.client.authentication.authenticator import Authenticator
from ottla.client.network.client_request import Completion
from ottla.clock import ManualClock
from ottla.errors import MissingExtraError
from ottla.security.login_refusal import LoginRefusal
from tests.patience import eventually

KERBEROS = {"bootstrap.servers": "a:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}


class Door:
    """Records rejected logins."""

    def __init__(self) -> None:
        self.refusals: dict[int, str] = {}

    def send_login_request(self, node_id: int, message: Any, completion: Completion, now: float) -> None:
        raise AssertionError("nobody has anything to log in with")

    def complete_login(self, node_id: int, renew_at: float) -> None:
        raise AssertionError("nobody has anything to log in with")

    def fail_login(self, node_id: int, reason: LoginRefusal, now: float) -> None:
        self.refusals[node_id] = str(reason)


def no_token() -> str:
    raise RuntimeError("out of order")


def test_all_waiters_for_a_token_get_the_error_when_the_provider_fails() -> None:
    tokens = {**KERBEROS, "sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": no_token}
    door, clock = Door(), ManualClock()
    authenticator = Authenticator(read_admin_settings(tokens, {}), door, clock, Random(1), lambda: None)
    for node_id in (1, 2, 3):
        authenticator.start_login(node_id, "a", clock.monotonic())

    def all_told() -> bool:
        authenticator.poll(clock.monotonic())
        return set(door.refusals) == {1, 2, 3}

    eventually(all_told)
    assert all("out of order" in reported for reported in door.refusals.values())


def test_a_client_without_the_kerberos_library_raises_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ottla\[kerberos\]'"):
        Admin(KERBEROS)
