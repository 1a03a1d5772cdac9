"""Connections that wait for something to log in with, and what becomes of them where there is nothing."""

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
    """Remembers who was refused."""

    def __init__(self) -> None:
        self.refusals: dict[int, str] = {}

    def ask(self, node_id: int, message: Any, completion: Completion, now: float) -> None:
        raise AssertionError("nobody has anything to log in with")

    def logged_in(self, node_id: int, renew_at: float) -> None:
        raise AssertionError("nobody has anything to log in with")

    def refused(self, node_id: int, reason: LoginRefusal, now: float) -> None:
        self.refusals[node_id] = str(reason)


def no_token() -> str:
    raise RuntimeError("out of order")


def test_all_who_wait_for_a_token_are_told_that_there_is_none() -> None:
    tokens = {**KERBEROS, "sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": no_token}
    door, clock = Door(), ManualClock()
    authenticator = Authenticator(read_admin_settings(tokens, {}), door, clock, Random(1), lambda: None)
    for node_id in (1, 2, 3):
        authenticator.begin(node_id, "a", clock.monotonic())

    def all_told() -> bool:
        authenticator.look(clock.monotonic())
        return set(door.refusals) == {1, 2, 3}

    eventually(all_told)
    assert all("out of order" in told for told in door.refusals.values())


def test_without_the_library_of_kerberos_a_client_says_so_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ottla\[kerberos\]'"):
        Admin(KERBEROS)
