"""Logins by Kerberos are begun on a thread, since a KDC is asked; tickets somebody fetched are renewed on it before they end.

`TicketKeeper` is asked and never waits.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from random import Random

from ottla.clock import Clock
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.gssapi import GssapiConversation
from ottla.security.kerberos import Tickets
from ottla.security.kerberos_login import KerberosError, kerberos_login
from ottla.security.security_config import SecurityConfig

LOG = logging.getLogger(__name__)
Begun = GssapiConversation | SaslError | KerberosError


class TicketKeeper:
    """The tickets of one client, and what is begun with them."""

    def __init__(self, config: SecurityConfig, clock: Clock, random: Random, wake: Callable[[], None]) -> None:
        self._tickets = Tickets(kerberos_login(config))
        self._config = config
        self._clock = clock
        self._random = random
        self._wake = wake
        self._lock = threading.Lock()
        self._asked: dict[int, str] = {}
        """Brokers for whom a login is to be begun, and where they are."""
        self._begun: dict[int, Begun] = {}
        self._running = self._renewing = False
        self._renew_at = math.inf

    @property
    def who(self) -> str | None:
        """Who logs in, if the settings say so."""
        return self._tickets.login.principal

    def ask(self, node_id: int, host: str) -> None:
        """Have a login begun; `wake` is called when it is."""
        with self._lock:
            self._begun.pop(node_id, None)
            self._asked[node_id] = host
        self._ensure_running()

    def take(self, node_id: int) -> GssapiConversation | None:
        """What was begun for a broker, once; None while it is not. KerberosError where there is no ticket."""
        with self._lock:
            begun = self._begun.pop(node_id, None)
        if isinstance(begun, Exception):
            raise begun
        return begun

    def forget(self, node_id: int) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            self._asked.pop(node_id, None)
            self._begun.pop(node_id, None)

    def look(self, now: float) -> None:
        """Have tickets renewed in good time."""
        if now >= self._renew_at:
            with self._lock:
                self._renewing, self._renew_at = True, math.inf
            self._ensure_running()

    def _ensure_running(self) -> None:
        with self._lock:
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name="ottla-kerberos", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                renews, self._renewing = self._renewing, False
                node_id, host = next(iter(self._asked.items()), (None, ""))
                if not renews and node_id is None:
                    self._running = False
                    return
            if renews:
                self._renew()
            if node_id is not None:
                self._begin(node_id, host)

    def _begin(self, node_id: int, host: str) -> None:
        begun: Begun
        try:
            begun = self._tickets.begin(host)
        except (SaslError, KerberosError) as error:
            begun = error
        except Exception as error:  # whatever the library raises, who waits has to be told
            begun = KerberosError(f"the library gssapi failed: {type(error).__name__}: {error}")
        self._plan_renewal()
        with self._lock:
            if self._asked.pop(node_id, None) is not None:
                self._begun[node_id] = begun
        self._wake()

    def _plan_renewal(self) -> None:
        life = self._tickets.lifetime()
        if life is None:
            return
        part = self._config.sasl_kerberos_ticket_renew_window_factor
        part += self._config.sasl_kerberos_ticket_renew_jitter * self._random.random()
        least = self._config.sasl_kerberos_min_time_before_relogin / 1000
        with self._lock:
            self._renew_at = self._clock.monotonic() + max(min(least, life / 2), life * min(part, 1.0))

    def _renew(self) -> None:
        if self._tickets.renew():
            self._plan_renewal()
        else:
            LOG.warning("the ticket could not be renewed (kinit -R), and logins will fail after its end; run kinit")
