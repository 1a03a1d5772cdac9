"""Authenticate connections: the requests that each may send before, and the exchange that authenticates it.

    welcome ──► lets_in (each request of a connection with a login) ──► shake_hands ──► authenticate … ──► DONE

The exchanges are pure (`protocol.sasl`). Passwords are hashed in a thread of their own, so that guesses do not delay
other clients. A failure is answered after a delay, with the same text for every cause, and counted; the log has the
cause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.rate_limited_log import RateLimitedLog
from ottla.broker.event_loop.timers import Timers
from ottla.broker.network_server.admission import affordable_connections
from ottla.broker.network_server.connection import ANONYMOUS, Connection
from ottla.broker.security.bearer_tokens import TokenRefused, TokenRules, UnknownKey, verify_token
from ottla.broker.security.delegation_tokens import DelegationTokens
from ottla.broker.security.listener_security import ListenerSecurity
from ottla.broker.security.login import ConnectionLogin, LoginAnswer, LoginState
from ottla.broker.security.login_counts import LoginCounts
from ottla.broker.security.scram_credentials import ScramCredentials, check_password
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.digests import are_same, nonce
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.scram_credential import ScramCredential
from ottla.protocol.sasl.server import Accepted, KnownUser, PasswordShown, ServerConversation, Step, TokenShown, Work
from ottla.protocol.sentences import shown

if TYPE_CHECKING:
    from ottla.broker.security.token_keys import TokenKeys

log = logging.getLogger(__name__)

LOGIN_SECONDS = 30.0
"""The time limit from the connection's start to its first authenticated request, including the TLS handshake."""
UNKNOWN_PART = 2
"""The divisor for the share of connections that may be unauthenticated; the others are for users."""
MOST_UNKNOWN = 1024
"""The maximum of unauthenticated connections. One more closes the one that has waited longest."""
LOGIN_APIS = frozenset((ApiVersionsRequest.KEY, SaslHandshakeRequest.KEY, SaslAuthenticateRequest.KEY))
REFUSED = "the login was refused: name, password or token is wrong"

Reply = Callable[[LoginAnswer], None]


class Authentication:
    """The logins of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Mapping[str, ListenerSecurity],
        passwords: ScramCredentials,
        tokens: DelegationTokens | None,
        timers: Timers,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._config = config
        self._listeners = listeners
        self._passwords = passwords
        self._tokens = tokens
        self._timers = timers
        self._clock = clock
        self._hashing = Disk(call_soon, threads=1)
        self._keys = {
            name: make_token_keys(each, clock, call_soon)
            for name, each in listeners.items()
            if each.with_sasl and "OAUTHBEARER" in each.mechanisms
        }
        self._unknown: dict[int, Connection] = {}
        self.counts = LoginCounts(listeners)
        self._refusals = RateLimitedLog(log, "logins failed", timers, clock)

    def accept_connection(self, connection: Connection, now: float) -> Connection | None:
        """Start the login of a connection. Return the connection to close if too many are not authenticated, else None."""
        security = self._listeners[connection.listener]
        if not security.has_login:
            return None
        connection.login = ConnectionLogin(security, now + LOGIN_SECONDS)
        self._unknown[connection.channel_id] = connection
        most = min(MOST_UNKNOWN, max(affordable_connections(self._config.max_connections) // UNKNOWN_PART, 1))
        return next(iter(self._unknown.values())) if len(self._unknown) > most else None

    @property
    def has_logins(self) -> bool:
        """True if any listener requires authentication."""
        return any(listener.has_login for listener in self._listeners.values())

    def remove_connection(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        self._unknown.pop(connection.channel_id, None)

    def list_overdue(self, now: float) -> list[Connection]:
        """Return the connections that have exceeded the time to authenticate."""
        late = []
        for connection in self._unknown.values():  # in the order of their arrival
            login = connection.login
            if login is None or login.deadline is None or login.deadline > now:
                break
            late.append(connection)
        return late

    def identify(self, connection: Connection, certificate: Any) -> str | None:
        """Authenticate a connection by its certificate at its first request. Return the reason if it fails, else None."""
        login = connection.login
        assert login is not None
        user = None if certificate is None else login.security.find_user(certificate)
        if certificate is not None and user is None:
            return "no rule of ssl.principal.mapping.rules matches the name in its certificate"
        connection.principal = ANONYMOUS if user is None else f"User:{user}"
        connection.login = None
        self.remove_connection(connection)
        return None

    def find_fault(self, connection: Connection, login: ConnectionLogin, api_key: int, now: float) -> str | None:
        """Return the reason why a connection may not send this request at this step of its login; None if it may."""
        if login.state is LoginState.REFUSED:
            return "authentication failed"
        if api_key in LOGIN_APIS:
            return None
        if login.user is None:
            return f"it sent a request (API key {api_key}) before it authenticated"
        if login.state is not LoginState.DONE:
            return f"it sent a request (API key {api_key}) while it re-authenticates"
        if login.expires_at is not None and login.expires_at <= now:
            self.counts.expired[connection.listener] += 1  # the caller closes the connection
            return "its session has expired, and it has not re-authenticated (connections.max.reauth.ms)"
        return None

    def shake_hands(self, connection: Connection, mechanism: str, *, raw: bool) -> tuple[int, tuple[str, ...]]:
        """Choose a mechanism. Return an error code, and the enabled mechanisms."""
        login, security = connection.login, self._listeners[connection.listener]
        if not security.with_sasl or (login is not None and login.state is LoginState.CHECKING):
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        if mechanism not in security.mechanisms:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, security.mechanisms
        if login is None:  # already authenticated: the client re-authenticates voluntarily
            login = connection.login = ConnectionLogin(security, 0)
            login.deadline, login.user = None, connection.principal.removeprefix("User:")
        login.mechanism, login.raw, login.state = mechanism, raw, LoginState.TALKING
        login.talk = self._start_conversation(mechanism, security)
        return ErrorCode.NONE, security.mechanisms

    def authenticate(self, connection: Connection, message: bytes, reply: Reply) -> None:
        """Process a message of a login. `reply` is called with the response, at once or later."""
        login = connection.login
        if login is None or login.state is not LoginState.TALKING or login.talk is None:
            reply(LoginAnswer(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate requires a SaslHandshake before"))
            return
        login.received_at = self._clock.monotonic()
        self._step(connection, login, login.talk, message, reply)

    def find_security(self, connection: Connection) -> ListenerSecurity:
        """Return the security settings of the connection's listener."""
        return self._listeners[connection.listener]

    def ensure_may_have_tokens(self, connection: Connection) -> None:
        """Raise KafkaError if the connection may not request delegation tokens."""
        if connection.principal == ANONYMOUS or connection.by_token:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                "delegation tokens are issued only to authenticated clients that did not authenticate by a token",
            )

    def close(self) -> None:
        """Stop the thread that hashes, and log the number of failures that were not logged."""
        self._refusals.log_suppressed()
        self._hashing.close()

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if a listener cannot apply settings that are to change at run time."""
        for listener in self._listeners.values():
            listener.check(config)

    def configure(self, config: BrokerConfig) -> None:
        """Apply settings that changed at run time."""
        for listener in self._listeners.values():
            listener.configure(config)

    def _start_conversation(self, mechanism: str, security: ListenerSecurity) -> ServerConversation:
        """Return a new exchange for a mechanism. The mechanism's module is loaded at its first use."""
        if mechanism == "PLAIN":
            from ottla.protocol.sasl.plain_server import PlainServerConversation

            return PlainServerConversation()
        if mechanism == "OAUTHBEARER":
            from ottla.protocol.sasl.oauthbearer_server import OAuthBearerServerConversation

            return OAuthBearerServerConversation()
        if security.acceptor is not None and mechanism == "GSSAPI":
            from ottla.protocol.sasl.gssapi_server import GssapiServerConversation

            return GssapiServerConversation(security.acceptor.open, security.acceptor.find_user)

        from ottla.protocol.sasl.scram_server import ScramServerConversation

        def find(name: str, by_token: bool) -> KnownUser | None:
            if by_token:
                return None if self._tokens is None else self._tokens.find_user(name)
            credential = self._passwords.find_credential(mechanism, name)
            return None if credential is None else KnownUser(name, credential)

        def make_decoy(name: str, by_token: bool) -> ScramCredential:
            if by_token and self._tokens is not None:
                return self._tokens.derive_credential(name)
            return self._passwords.make_decoy(mechanism, name)

        tokens = self._tokens
        check_token = None if tokens is None else partial(tokens.check, mechanism)
        return ScramServerConversation(mechanism, find, nonce(), b"", make_decoy, check_token)

    def _step(
        self, connection: Connection, login: ConnectionLogin, talk: ServerConversation, message: bytes, reply: Reply
    ) -> None:
        try:
            step: Step = talk.next(message)
        except SaslError as error:
            self._reject(connection, login, str(error), reply)
        else:
            self._handle_step(connection, login, step, reply)

    def _handle_step(self, connection: Connection, login: ConnectionLogin, step: Step, reply: Reply) -> None:
        if isinstance(step, bytes):
            reply(LoginAnswer(auth_bytes=step))
        elif isinstance(step, Accepted):
            self._accept(connection, login, step, reply)
        elif isinstance(step, PasswordShown):
            self._check_password(connection, login, step, reply)
        elif isinstance(step, Work):
            self._run_step(connection, login, step, reply)
        else:
            self._check_token(connection, login, step, reply)

    def _run_step(self, connection: Connection, login: ConnectionLogin, work: Work, reply: Reply) -> None:
        outcome: list[Step] = []
        login.state = LoginState.CHECKING

        def done(error: BaseException | None) -> None:
            if login.state is not LoginState.CHECKING or connection.login is not login:
                return
            if error is None:
                login.state = LoginState.TALKING
                self._handle_step(connection, login, outcome[0], reply)
                return
            if not isinstance(error, SaslError):
                log.error("authentication by %s failed with an internal error", login.mechanism, exc_info=error)
            self._reject(connection, login, str(error), reply)

        self._hashing.submit(lambda: outcome.append(work.do()), done)

    def _check_password(
        self, connection: Connection, login: ConnectionLogin, step: PasswordShown, reply: Reply
    ) -> None:
        listed = login.security.users.get(step.user)
        if listed is None:
            is_right = self._passwords.is_remembered(step.user, step.password)
        else:
            is_right = are_same(listed.encode(), step.password.encode())
        if is_right:
            self._check_proof(connection, login, step, is_right, reply)
            return
        # The wrong password of a listed user and that of an unknown one are hashed too, so that refusals take the same time.
        mechanism, credential = self._passwords.find_any(step.user)
        outcome: list[bool] = []
        login.state = LoginState.CHECKING

        def done(error: BaseException | None) -> None:
            if login.state is LoginState.CHECKING and connection.login is login:
                right = error is None and outcome == [True] and listed is None
                if right:
                    self._passwords.remember_password(step.user, step.password, credential)
                self._check_proof(connection, login, step, right, reply)

        work = lambda: outcome.append(check_password(mechanism, credential, step.password))  # noqa: E731
        self._hashing.submit(work, done)

    def _check_proof(
        self, connection: Connection, login: ConnectionLogin, step: PasswordShown, right: bool, reply: Reply
    ) -> None:
        if right:
            self._accept(connection, login, Accepted(step.user), reply)
        else:
            reason = f"wrong password or unknown user {shown(step.user)}"
            self._reject(connection, login, reason, reply)

    def _check_token(
        self, connection: Connection, login: ConnectionLogin, step: TokenShown, reply: Reply, *, again: bool = False
    ) -> None:
        keys, rules = self._keys[connection.listener], TokenRules.read(login.security.config)
        try:
            user, ends = verify_token(step.token, keys.current_keys(), rules, self._clock.wall_ms() / 1000)
        except UnknownKey as error:

            def continue_login() -> None:
                if connection.login is login and login.state is LoginState.CHECKING:
                    self._check_token(connection, login, step, reply, again=True)

            login.state = LoginState.CHECKING
            if again or not keys.fetch_again(continue_login):
                self._refuse_token(login, str(error), reply)
        except TokenRefused as error:
            self._refuse_token(login, str(error), reply)
        else:
            self._accept(connection, login, Accepted(user, until_ms=ends * 1000), reply)

    def _refuse_token(self, login: ConnectionLogin, reason: str, reply: Reply) -> None:
        from ottla.protocol.sasl.oauthbearer_server import OAuthBearerServerConversation

        assert isinstance(login.talk, OAuthBearerServerConversation)
        login.state = LoginState.TALKING  # the client has to send a last message
        reply(LoginAnswer(auth_bytes=login.talk.refuse(reason)))

    def _accept(self, connection: Connection, login: ConnectionLogin, accepted: Accepted, reply: Reply) -> None:
        if login.user is not None and login.user != accepted.user:
            self._reject(
                connection, login, f"it logs in again as {shown(accepted.user)}, and was {login.user!r}", reply
            )
            return
        lifetime_ms = self._lifetime_ms(login, accepted)
        if lifetime_ms is not None and lifetime_ms <= 0:
            self._reject(connection, login, "what it shows has ended by now", reply)
            return
        self.counts.count_success(connection.listener, again=login.user is not None)
        self._unknown.pop(connection.channel_id, None)
        login.state, login.talk, login.raw = LoginState.DONE, None, False
        login.user, login.deadline = accepted.user, None
        connection.principal, connection.by_token = f"User:{accepted.user}", accepted.by_token
        if lifetime_ms is None:
            connection.login = None
        else:
            login.expires_at = self._clock.monotonic() + lifetime_ms / 1000
        reply(LoginAnswer(auth_bytes=accepted.answer, session_lifetime_ms=lifetime_ms or 0))

    def _lifetime_ms(self, login: ConnectionLogin, accepted: Accepted) -> int | None:
        most = login.security.max_reauth_ms(login.mechanism)
        spans = [most] if most else []
        if accepted.until_ms is not None:
            spans.append(int(accepted.until_ms - self._clock.wall_ms()))
        return min(spans) if spans else None

    def _reject(self, connection: Connection, login: ConnectionLogin, reason: str, reply: Reply) -> None:
        self.counts.count_failure(connection.listener, again=login.user is not None)
        self._refusals.log(
            f"authentication by {login.mechanism} failed for {connection} on listener {connection.listener}: {reason}"
        )
        login.state, login.talk = LoginState.REFUSED, None
        answer = LoginAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
        delay = self._config.connection_failed_authentication_delay_ms / 1000
        if login.deadline is None:  # it had authenticated before, and has failed now
            login.deadline = self._clock.monotonic() + LOGIN_SECONDS
            self._unknown[connection.channel_id] = connection
        # Counted from the message, so that the time for checking it cannot be seen.
        self._timers.schedule(login.received_at + delay, lambda: reply(answer))


def make_token_keys(
    listener: ListenerSecurity, clock: Clock, call_soon: Callable[[Callable[[], None]], None]
) -> TokenKeys:
    """Return the token keys of a listener; their module is loaded at its first use."""
    from ottla.broker.security.token_keys import TokenKeys

    return TokenKeys(listener.config, clock, call_soon)
