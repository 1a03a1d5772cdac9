"""Authentication at other nodes: by a password at once, by Kerberos once a KDC has responded.

The KDC is called in a thread, and callers check whether there is a result: neither a loop nor a stop waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.settings.peer_security import KERBEROS, PeerSecurity
from ottla.protocol.sasl.conversation import Conversation, SaslError
from ottla.security.kerberos_login import KerberosError, NoKdcError, kerberos_login
from ottla.security.login import Login, password_conversation
from ottla.security.security import password_login

if TYPE_CHECKING:  # loaded only for Kerberos
    from ottla.security.kerberos import Tickets

log = logging.getLogger(__name__)
SILENT_SECONDS = 5.0
"""The time after which a warning reports that no KDC responds: the library retries silently for half a minute or
longer.
"""


class PeerLogins:
    """Logins at listeners of one kind. May be started from any thread."""

    def __init__(self, security: PeerSecurity) -> None:
        """Raise MissingExtraError or ConfigError if Kerberos is configured and not available."""
        self._security = security
        self._tickets: Tickets | None = None
        self._is_silence_logged = False
        if security.config.sasl_mechanism == KERBEROS:
            from ottla.security.kerberos import Tickets

            self._tickets = Tickets(kerberos_login(security.config))

    def start_login(self, host: str, wake: Callable[[], None]) -> PendingLogin:
        """Start a login at a host. `wake` is called by another thread when its state changes."""
        if self._tickets is None:
            login = password_login(self._security.config)
            remedy = f"check the name and password in {self._security.jaas_setting}"
            talk = password_conversation(self._security.config.sasl_mechanism or "", login)
            return PendingLogin(self._make_login(talk, login.username, remedy))
        pending = PendingLogin()
        arguments = self._tickets, host, pending, wake
        threading.Thread(target=self._request_ticket, args=arguments, name="ottla-kerberos", daemon=True).start()
        return pending

    def _request_ticket(self, tickets: Tickets, host: str, pending: PendingLogin, wake: Callable[[], None]) -> None:
        remedy = f"check its log and its keys, {self._security.jaas_setting}, and the clocks of both machines"
        silence = threading.Timer(SILENT_SECONDS, self._log_silence, [host])
        silence.daemon = True
        silence.start()
        try:
            pending.complete(self._make_login(tickets.begin_login(host), tickets.login.principal, remedy))
            self._is_silence_logged = False
        except NoKdcError as error:
            pending.complete(PeerLost(str(error)))
        except (SaslError, KerberosError) as error:
            pending.complete(PeerRefused(str(error)))
        except Exception as error:  # every error of the library is reported to the caller
            pending.complete(PeerLost(f"the library gssapi failed: {type(error).__name__}: {error}"))
        finally:
            silence.cancel()
        wake()

    def _log_silence(self, host: str) -> None:
        """Log once that no KDC responds, until one does again."""
        if not self._is_silence_logged:
            self._is_silence_logged = True
            log.warning(
                "no KDC has responded for %g s, and authentication at %s (%s) waits for it: check that it runs, "
                "and its address in krb5.conf",
                SILENT_SECONDS,
                host,
                self._security.listener,
            )

    def _make_login(self, talk: Conversation, name: str | None, remedy: str) -> Login:
        security = self._security
        assert security.config.sasl_mechanism is not None
        no_login = f"set the protocol of {security.listener} in listener.security.protocol.map"
        return Login(security.config.sasl_mechanism, talk, name=name, remedy=remedy, no_login=no_login)


class PendingLogin:
    """A login that may not be complete yet."""

    def __init__(self, outcome: Login | PeerLost | None = None) -> None:
        self._outcome = outcome

    def complete(self, outcome: Login | PeerLost) -> None:
        self._outcome = outcome

    def login(self) -> Login | None:
        """Return the login; None while it is not known. Raise PeerLost if it failed."""
        if isinstance(self._outcome, PeerLost):
            raise self._outcome
        return self._outcome
