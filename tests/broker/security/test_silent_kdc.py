"""A KDC that does not answer, as the log of a broker tells of it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.peers import peer_login
from ottla.broker.peers.peer_login import PeerLogins
from ottla.security.kerberos_login import NoKdcError
from tests.patience import eventually

TOLD = "no KDC has answered for {:g} s, without which there is no login at other (INTERNAL): "


def logins(answer: Callable[[], Any]) -> PeerLogins:
    """Logins by Kerberos whose KDC answers so."""
    security: Any = SimpleNamespace(
        config=SimpleNamespace(sasl_mechanism="PLAIN"), jaas_setting="sasl.jaas.config", listener="INTERNAL"
    )
    found = PeerLogins(security)
    tickets: Any = SimpleNamespace(begin=lambda host: answer(), login=SimpleNamespace(principal="kafka/here"))
    found._tickets = tickets
    security.config.sasl_mechanism = "GSSAPI"
    return found


def asked(who: PeerLogins) -> None:
    """Until there is an outcome."""
    woken: list[bool] = []
    who.begin("other", lambda: woken.append(True))
    eventually(lambda: woken)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith("no KDC")]


def test_a_kdc_that_is_silent_is_told_once_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peer_login, "SILENT_SECONDS", 0.0)
    told = TOLD.format(0)
    given_up: list[int] = []

    def silent() -> Any:
        eventually(lambda: lines(caplog))
        given_up.append(1)
        raise NoKdcError("no KDC")

    who = logins(silent)
    asked(who)
    asked(who)
    assert len(given_up) == 2
    (line,) = lines(caplog)
    assert line.startswith(told)


def test_one_that_answers_is_not_told_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(peer_login, "SILENT_SECONDS", 3600.0)
    asked(logins(lambda: SimpleNamespace()))
    assert not lines(caplog)
