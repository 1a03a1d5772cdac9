"""Logs connections in: what each may ask before it is known, and the conversations by which it becomes known.

    welcome ──► lets_in (each request of a connection with a login) ──► shake_hands ──► authenticate … ──► DONE

What a client says is judged by pure conversations (`protocol.sasl`); passwords that are shown are hashed on a thread of their own,
so that guesses delay nobody else. A refusal is told after a delay, in the same words whatever was wrong, and counted; the log
says what it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.authentication.delegation_tokens import DelegationTokens
from ottla.broker.authentication.listener_security import ListenerSecurity
from ottla.broker.authentication.login import Login, LoginAnswer, LoginState
from ottla.broker.authentication.login_counts import LoginCounts
from ottla.broker.authentication.passwords import Passwords, check_password
from ottla.broker.authentication.tokens import TokenRefused, TokenRules, UnknownKey, verify
from ottla.broker.bounded_log import BoundedLog
from ottla.broker.disk import Disk
from ottla.broker.requests.admission import affordable_connections
from ottla.broker.requests.connection import ANONYMOUS, Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
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
    from ottla.broker.authentication.token_keys import TokenKeys

log = logging.getLogger(__name__)

LOGIN_SECONDS = 30.0
"""How long a connection may take from its beginning to its first request that counts, a handshake of TLS included."""
UNKNOWN_PART = 2
"""One place in so many may be taken by connections that have not logged in: the others are for users."""
MOST_UNKNOWN = 1024
"""Connections that have not logged in, at a time; for one more the one that has been at it longest has to go."""
LOGIN_APIS = frozenset((ApiVersionsRequest.KEY, SaslHandshakeRequest.KEY, SaslAuthenticateRequest.KEY))
REFUSED = "the login was refused: name, password or token is wrong"

Reply = Callable[[LoginAnswer], None]


class Authentication:
    """The logins of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Mapping[str, ListenerSecurity],
        passwords: Passwords,
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
            name: keys_of(each, clock, call_soon)
            for name, each in listeners.items()
            if each.with_sasl and "OAUTHBEARER" in each.mechanisms
        }
        self._unknown: dict[int, Connection] = {}
        self.counts = LoginCounts(listeners)
        self._refusals = BoundedLog(log, "logins failed", timers, clock)

    def welcome(self, connection: Connection, now: float) -> Connection | None:
        """Begin with a connection; who has to go for it, where there are too many that nobody knows yet."""
        security = self._listeners[connection.listener]
        if not security.has_login:
            return None
        connection.login = Login(security, now + LOGIN_SECONDS)
        self._unknown[connection.channel_id] = connection
        most = min(MOST_UNKNOWN, max(affordable_connections(self._config.max_connections) // UNKNOWN_PART, 1))
        return next(iter(self._unknown.values())) if len(self._unknown) > most else None

    @property
    def has_logins(self) -> bool:
        """Whether there may be connections that nobody knows yet."""
        return any(listener.has_login for listener in self._listeners.values())

    def leave(self, connection: Connection) -> None:
        """A connection with a login has ended."""
        self._unknown.pop(connection.channel_id, None)

    def overdue(self, now: float) -> list[Connection]:
        """Who has taken too long to log in."""
        late = []
        for connection in self._unknown.values():  # in the order in which they came
            login = connection.login
            if login is None or login.deadline is None or login.deadline > now:
                break
            late.append(connection)
        return late

    def identify(self, connection: Connection, certificate: Any) -> str | None:
        """By its certificate, on a listener without logins, when its first request comes; why not, or None."""
        login = connection.login
        assert login is not None
        user = None if certificate is None else login.security.user_of(certificate)
        if certificate is not None and user is None:
            return "no rule of ssl.principal.mapping.rules fits the name in its certificate"
        connection.principal = ANONYMOUS if user is None else f"User:{user}"
        connection.login = None
        self.leave(connection)
        return None

    def fault_of(self, connection: Connection, login: Login, api_key: int, now: float) -> str | None:
        """Why a connection may not ask this, as far as it has come; None where it may."""
        if login.state is LoginState.REFUSED:
            return "its login was refused"
        if api_key in LOGIN_APIS:
            return None
        if login.user is None:
            return f"it asks for something (API key {api_key}) before it has logged in"
        if login.state is not LoginState.DONE:
            return f"it asks for something (API key {api_key}) while it logs in again"
        if login.expires_at is not None and login.expires_at <= now:
            self.counts.expired[connection.listener] += 1  # who is told this is hung up on
            return "its session is over, and it has not logged in again (connections.max.reauth.ms)"
        return None

    def shake_hands(self, connection: Connection, mechanism: str, *, raw: bool) -> tuple[int, tuple[str, ...]]:
        """Agree on a mechanism: an error code, and those there are."""
        login, security = connection.login, self._listeners[connection.listener]
        if not security.with_sasl or (login is not None and login.state is LoginState.CHECKING):
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        if mechanism not in security.mechanisms:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, security.mechanisms
        if login is None:  # it is known already, and logs in again of its own accord
            login = connection.login = Login(security, 0)
            login.deadline, login.user = None, connection.principal.removeprefix("User:")
        login.mechanism, login.raw, login.state = mechanism, raw, LoginState.TALKING
        login.talk = self._conversation(mechanism, security)
        return ErrorCode.NONE, security.mechanisms

    def authenticate(self, connection: Connection, message: bytes, reply: Reply) -> None:
        """Go on with a login; `reply` is called with what the client is told, at once or later."""
        login = connection.login
        if login is None or login.state is not LoginState.TALKING or login.talk is None:
            reply(LoginAnswer(ErrorCode.ILLEGAL_SASL_STATE, "SaslHandshake comes before SaslAuthenticate"))
            return
        login.received_at = self._clock.monotonic()
        self._step(connection, login, login.talk, message, reply)

    def security_of(self, connection: Connection) -> ListenerSecurity:
        """What the listener asks for by which a connection came."""
        return self._listeners[connection.listener]

    def ensure_may_have_tokens(self, connection: Connection) -> None:
        """KafkaError for who is not known well enough to have delegation tokens."""
        if connection.principal == ANONYMOUS or connection.by_token:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "tokens are for who has logged in, and not by a token"
            )

    def close(self) -> None:
        """Let the thread that hashes end, and say what was not said of logins."""
        self._refusals.tell_rest()
        self._hashing.close()

    def check(self, config: BrokerConfig) -> None:
        """ConfigError where a listener could not take up what is to be changed at run time."""
        for listener in self._listeners.values():
            listener.check(config)

    def configure(self, config: BrokerConfig) -> None:
        """Take up what was changed at run time."""
        for listener in self._listeners.values():
            listener.configure(config)

    def _conversation(self, mechanism: str, security: ListenerSecurity) -> ServerConversation:
        """Each is loaded by the first who logs in so."""
        if mechanism == "PLAIN":
            from ottla.protocol.sasl.plain_server import PlainServerConversation

            return PlainServerConversation()
        if mechanism == "OAUTHBEARER":
            from ottla.protocol.sasl.oauthbearer_server import OAuthBearerServerConversation

            return OAuthBearerServerConversation()
        if security.acceptor is not None and mechanism == "GSSAPI":
            from ottla.protocol.sasl.gssapi_server import GssapiServerConversation

            return GssapiServerConversation(security.acceptor.open, security.acceptor.user_of)

        from ottla.protocol.sasl.scram_server import ScramServerConversation

        def find(name: str, by_token: bool) -> KnownUser | None:
            if by_token:
                return None if self._tokens is None else self._tokens.known(name)
            credential = self._passwords.credential(mechanism, name)
            return None if credential is None else KnownUser(name, credential)

        def make_decoy(name: str, by_token: bool) -> ScramCredential:
            if by_token and self._tokens is not None:
                return self._tokens.unstretched(name)
            return self._passwords.decoy(mechanism, name)

        tokens = self._tokens
        check_token = None if tokens is None else partial(tokens.check, mechanism)
        return ScramServerConversation(mechanism, find, nonce(), b"", make_decoy, check_token)

    def _step(
        self, connection: Connection, login: Login, talk: ServerConversation, message: bytes, reply: Reply
    ) -> None:
        try:
            step: Step = talk.next(message)
        except SaslError as error:
            self._refuse(connection, login, str(error), reply)
        else:
            self._take(connection, login, step, reply)

    def _take(self, connection: Connection, login: Login, step: Step, reply: Reply) -> None:
        if isinstance(step, bytes):
            reply(LoginAnswer(auth_bytes=step))
        elif isinstance(step, Accepted):
            self._accept(connection, login, step, reply)
        elif isinstance(step, PasswordShown):
            self._check_password(connection, login, step, reply)
        elif isinstance(step, Work):
            self._do(connection, login, step, reply)
        else:
            self._check_token(connection, login, step, reply)

    def _do(self, connection: Connection, login: Login, work: Work, reply: Reply) -> None:
        outcome: list[Step] = []
        login.state = LoginState.CHECKING

        def done(error: BaseException | None) -> None:
            if login.state is not LoginState.CHECKING or connection.login is not login:
                return
            if error is None:
                login.state = LoginState.TALKING
                self._take(connection, login, outcome[0], reply)
                return
            if not isinstance(error, SaslError):
                log.error("a login by %s could not be looked at", login.mechanism, exc_info=error)
            self._refuse(connection, login, str(error), reply)

        self._hashing.submit(lambda: outcome.append(work.do()), done)

    def _check_password(self, connection: Connection, login: Login, step: PasswordShown, reply: Reply) -> None:
        listed = login.security.users.get(step.user)
        if listed is None:
            is_right = self._passwords.is_remembered(step.user, step.password)
        else:
            is_right = are_same(listed.encode(), step.password.encode())
        if is_right:
            self._judge(connection, login, step, is_right, reply)
            return
        # The wrong password of a listed user and that of an unknown one are hashed too, so that refusals take the same time.
        mechanism, credential = self._passwords.any_of(step.user)
        outcome: list[bool] = []
        login.state = LoginState.CHECKING

        def done(error: BaseException | None) -> None:
            if login.state is LoginState.CHECKING and connection.login is login:
                right = error is None and outcome == [True] and listed is None
                if right:
                    self._passwords.remember(step.user, step.password, credential)
                self._judge(connection, login, step, right, reply)

        work = lambda: outcome.append(check_password(mechanism, credential, step.password))  # noqa: E731
        self._hashing.submit(work, done)

    def _judge(self, connection: Connection, login: Login, step: PasswordShown, right: bool, reply: Reply) -> None:
        if right:
            self._accept(connection, login, Accepted(step.user), reply)
        else:
            reason = f"the password is wrong, or there is no such user: {shown(step.user)}"
            self._refuse(connection, login, reason, reply)

    def _check_token(
        self, connection: Connection, login: Login, step: TokenShown, reply: Reply, *, again: bool = False
    ) -> None:
        keys, rules = self._keys[connection.listener], TokenRules.of(login.security.config)
        try:
            user, ends = verify(step.token, keys.current(), rules, self._clock.wall_ms() / 1000)
        except UnknownKey as error:

            def go_on() -> None:
                if connection.login is login and login.state is LoginState.CHECKING:
                    self._check_token(connection, login, step, reply, again=True)

            login.state = LoginState.CHECKING
            if again or not keys.renew(go_on):
                self._refuse_token(login, str(error), reply)
        except TokenRefused as error:
            self._refuse_token(login, str(error), reply)
        else:
            self._accept(connection, login, Accepted(user, until_ms=ends * 1000), reply)

    def _refuse_token(self, login: Login, reason: str, reply: Reply) -> None:
        from ottla.protocol.sasl.oauthbearer_server import OAuthBearerServerConversation

        assert isinstance(login.talk, OAuthBearerServerConversation)
        login.state = LoginState.TALKING  # the client has a last word
        reply(LoginAnswer(auth_bytes=login.talk.refuse(reason)))

    def _accept(self, connection: Connection, login: Login, accepted: Accepted, reply: Reply) -> None:
        if login.user is not None and login.user != accepted.user:
            self._refuse(
                connection, login, f"it logs in again as {shown(accepted.user)}, and was {login.user!r}", reply
            )
            return
        lifetime_ms = self._lifetime_ms(login, accepted)
        if lifetime_ms is not None and lifetime_ms <= 0:
            self._refuse(connection, login, "what it shows has ended by now", reply)
            return
        self.counts.succeeded(connection.listener, again=login.user is not None)
        self._unknown.pop(connection.channel_id, None)
        login.state, login.talk, login.raw = LoginState.DONE, None, False
        login.user, login.deadline = accepted.user, None
        connection.principal, connection.by_token = f"User:{accepted.user}", accepted.by_token
        if lifetime_ms is None:
            connection.login = None
        else:
            login.expires_at = self._clock.monotonic() + lifetime_ms / 1000
        reply(LoginAnswer(auth_bytes=accepted.answer, session_lifetime_ms=lifetime_ms or 0))

    def _lifetime_ms(self, login: Login, accepted: Accepted) -> int | None:
        most = login.security.max_reauth_ms(login.mechanism)
        spans = [most] if most else []
        if accepted.until_ms is not None:
            spans.append(int(accepted.until_ms - self._clock.wall_ms()))
        return min(spans) if spans else None

    def _refuse(self, connection: Connection, login: Login, reason: str, reply: Reply) -> None:
        self.counts.failed(connection.listener, again=login.user is not None)
        self._refusals.tell(f"a login by {login.mechanism} from {connection} at {connection.listener} failed: {reason}")
        login.state, login.talk = LoginState.REFUSED, None
        answer = LoginAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
        delay = self._config.connection_failed_authentication_delay_ms / 1000
        if login.deadline is None:  # it was logged in, and is no more
            login.deadline = self._clock.monotonic() + LOGIN_SECONDS
            self._unknown[connection.channel_id] = connection
        # Counted from the message, so that the time for checking it cannot be seen.
        self._timers.at(login.received_at + delay, lambda: reply(answer))


def keys_of(listener: ListenerSecurity, clock: Clock, call_soon: Callable[[Callable[[], None]], None]) -> TokenKeys:
    """Loaded by those who take tokens."""
    from ottla.broker.authentication.token_keys import TokenKeys

    return TokenKeys(listener.config, clock, call_soon)
