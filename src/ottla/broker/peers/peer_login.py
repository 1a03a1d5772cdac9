"""How this broker logs in where others listen: by a password at once, by Kerberos when a KDC has answered.

A KDC is asked on a thread, and who wants to log in looks whether there is an answer: neither a loop nor a stop waits for it.
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
from ottla.security.login import Login, by_password
from ottla.security.security import password_login

if TYPE_CHECKING:  # loaded by those who need Kerberos
    from ottla.security.kerberos import Tickets

log = logging.getLogger(__name__)
SILENT_SECONDS = 5.0
"""After which it is told that no KDC answers: the library goes on asking for half a minute or longer, and says nothing meanwhile."""


class PeerLogins:
    """Logins at listeners of one kind; may be begun from any thread."""

    def __init__(self, security: PeerSecurity) -> None:
        """MissingExtraError or ConfigError where there is no Kerberos here."""
        self._security = security
        self._tickets: Tickets | None = None
        self._is_silence_told = False
        if security.config.sasl_mechanism == KERBEROS:
            from ottla.security.kerberos import Tickets

            self._tickets = Tickets(kerberos_login(security.config))

    def begin(self, host: str, wake: Callable[[], None]) -> BegunLogin:
        """One at a host; `wake` is called, by another thread, when there is more to see of it."""
        if self._tickets is None:
            who = password_login(self._security.config)
            remedy = f"look at the name and password in {self._security.jaas_setting}"
            talk = by_password(self._security.config.sasl_mechanism or "", who)
            return BegunLogin(self._login(talk, who.username, remedy))
        begun = BegunLogin()
        arguments = self._tickets, host, begun, wake
        threading.Thread(target=self._ask_kdc, args=arguments, name="ottla-kerberos", daemon=True).start()
        return begun

    def _ask_kdc(self, tickets: Tickets, host: str, begun: BegunLogin, wake: Callable[[], None]) -> None:
        remedy = f"look at its log and its keys, at {self._security.jaas_setting}, and at the clocks of both machines"
        silence = threading.Timer(SILENT_SECONDS, self._tell_of_silence, [host])
        silence.daemon = True
        silence.start()
        try:
            begun.end(self._login(tickets.begin(host), tickets.login.principal, remedy))
            self._is_silence_told = False
        except NoKdcError as error:
            begun.end(PeerLost(str(error)))
        except (SaslError, KerberosError) as error:
            begun.end(PeerRefused(str(error)))
        except Exception as error:  # whatever the library raises, who waits has to be told
            begun.end(PeerLost(f"the library gssapi failed: {type(error).__name__}: {error}"))
        finally:
            silence.cancel()
        wake()

    def _tell_of_silence(self, host: str) -> None:
        """Once, until a KDC answers again."""
        if not self._is_silence_told:
            self._is_silence_told = True
            log.warning(
                "no KDC has answered for %g s, without which there is no login at %s (%s): see whether it runs, and where krb5.conf "
                "says that it is",
                SILENT_SECONDS,
                host,
                self._security.listener,
            )

    def _login(self, talk: Conversation, name: str | None, remedy: str) -> Login:
        security = self._security
        assert security.config.sasl_mechanism is not None
        no_login = f"have listener.security.protocol.map say what {security.listener} speaks there"
        return Login(security.config.sasl_mechanism, talk, name=name, remedy=remedy, no_login=no_login)


class BegunLogin:
    """A login that there may already be."""

    def __init__(self, outcome: Login | PeerLost | None = None) -> None:
        self._outcome = outcome

    def end(self, outcome: Login | PeerLost) -> None:
        self._outcome = outcome

    def login(self) -> Login | None:
        """What to say; None while that is not known. PeerLost where there is nothing to log in with."""
        if isinstance(self._outcome, PeerLost):
            raise self._outcome
        return self._outcome
