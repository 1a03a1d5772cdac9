"""Start Kerberos logins on a background thread, because the KDC may block, and renew tickets before they expire.

The methods of `TicketKeeper` never block.
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
LoginAttempt = GssapiConversation | SaslError | KerberosError


class TicketKeeper:
    """The Kerberos tickets of one client and the conversations started with them."""

    def __init__(self, config: SecurityConfig, clock: Clock, random: Random, wake: Callable[[], None]) -> None:
        self._tickets = Tickets(kerberos_login(config))
        self._config = config
        self._clock = clock
        self._random = random
        self._wake = wake
        self._lock = threading.Lock()
        self._requested: dict[int, str] = {}
        """The host of each broker for which a login is requested."""
        self._attempts: dict[int, LoginAttempt] = {}
        self._running = self._renewing = False
        self._renew_at = math.inf

    @property
    def principal(self) -> str | None:
        """The principal that logs in, if the settings name one."""
        return self._tickets.login.principal

    def send_login_request(self, node_id: int, host: str) -> None:
        """Request a conversation for a broker; `wake` is called when it is available."""
        with self._lock:
            self._attempts.pop(node_id, None)
            self._requested[node_id] = host
        self._ensure_running()

    def take_conversation(self, node_id: int) -> GssapiConversation | None:
        """Remove and return the conversation for a broker; None if it is not available yet.

        Raises KerberosError or SaslError.
        """
        with self._lock:
            attempt = self._attempts.pop(node_id, None)
        if isinstance(attempt, Exception):
            raise attempt
        return attempt

    def cancel_request(self, node_id: int) -> None:
        """Cancel the request for a broker."""
        with self._lock:
            self._requested.pop(node_id, None)
            self._attempts.pop(node_id, None)

    def renew_if_due(self, now: float) -> None:
        """Start renewing the ticket if the renewal is due."""
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
                should_renew, self._renewing = self._renewing, False
                node_id, host = next(iter(self._requested.items()), (None, ""))
                if not should_renew and node_id is None:
                    self._running = False
                    return
            if should_renew:
                self._renew()
            if node_id is not None:
                self._start_conversation(node_id, host)

    def _start_conversation(self, node_id: int, host: str) -> None:
        attempt: LoginAttempt
        try:
            attempt = self._tickets.begin_login(host)
        except (SaslError, KerberosError) as error:
            attempt = error
        except Exception as error:  # an error of any type is raised in the login that waits
            attempt = KerberosError(f"the library gssapi failed: {type(error).__name__}: {error}")
        self._schedule_renewal()
        with self._lock:
            if self._requested.pop(node_id, None) is not None:
                self._attempts[node_id] = attempt
        self._wake()

    def _schedule_renewal(self) -> None:
        lifetime = self._tickets.lifetime()
        if lifetime is None:
            return
        factor = self._config.sasl_kerberos_ticket_renew_window_factor
        factor += self._config.sasl_kerberos_ticket_renew_jitter * self._random.random()
        min_seconds = self._config.sasl_kerberos_min_time_before_relogin / 1000
        with self._lock:
            self._renew_at = self._clock.monotonic() + max(min(min_seconds, lifetime / 2), lifetime * min(factor, 1.0))

    def _renew(self) -> None:
        if self._tickets.renew():
            self._schedule_renewal()
        else:
            LOG.warning("ticket renewal failed (kinit -R); logins will fail after it expires; run kinit")
