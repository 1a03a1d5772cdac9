"""A KDC that does not respond, and the log of the broker."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.peers import peer_login
from ottla.broker.peers.peer_login import PeerLogins
from ottla.security.kerberos_login import NoKdcError
from tests.patience import eventually

TOLD = "no KDC has responded for {:g} s, and authentication at other (INTERNAL) waits for it: "


def logins(answer: Callable[[], Any]) -> PeerLogins:
    """Kerberos logins with a simulated KDC."""
    security: Any = SimpleNamespace(
        config=SimpleNamespace(sasl_mechanism="PLAIN"), jaas_setting="sasl.jaas.config", listener="INTERNAL"
    )
    found = PeerLogins(security)
    tickets: Any = SimpleNamespace(begin_login=lambda host: answer(), login=SimpleNamespace(principal="kafka/here"))
    found._tickets = tickets
    security.config.sasl_mechanism = "GSSAPI"
    return found


def wait_for_login(who: PeerLogins) -> None:
    """Until there is an outcome."""
    woken: list[bool] = []
    who.start_login("other", lambda: woken.append(True))
    eventually(lambda: woken)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith("no KDC")]


def test_a_silent_kdc_is_logged_once_until_it_responds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peer_login, "SILENT_SECONDS", 0.0)
    message = TOLD.format(0)
    given_up: list[int] = []

    def silent() -> Any:
        eventually(lambda: lines(caplog))
        given_up.append(1)
        raise NoKdcError("no KDC")

    who = logins(silent)
    wait_for_login(who)
    wait_for_login(who)
    assert len(given_up) == 2
    (line,) = lines(caplog)
    assert line.startswith(message)


def test_a_responding_kdc_is_not_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(peer_login, "SILENT_SECONDS", 3600.0)
    wait_for_login(logins(lambda: SimpleNamespace()))
    assert not lines(caplog)
