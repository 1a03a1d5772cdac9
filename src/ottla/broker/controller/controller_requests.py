"""The requests that a controller serves: those of the quorum, of brokers, and of clients in envelopes of brokers.

Logins are the same as those of a broker's listeners, with one difference: users are known by the settings or by Kerberos
alone. The users of the cluster are in the metadata log, which a controller may still have to fetch from the nodes
that log in to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any

from ottla.broker.controller.asker import read_requester
from ottla.broker.controller.controller_apis import CONTROLLER_APIS, api_versions, find_versions
from ottla.broker.controller.controller_calls import ControllerCalls
from ottla.broker.network_server.call import Call, Outcome, Resumes
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.network_server.request_table import Work
from ottla.broker.security.authentication import Authentication
from ottla.broker.security.listener_security import ListenerSecurity
from ottla.broker.security.login import LoginAnswer
from ottla.broker.security.scram_credentials import ScramCredentials
from ottla.errors import ConfigError, ErrorCode, ProtocolError
from ottla.protocol.apis import APIS
from ottla.protocol.conversation import decode_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.protocol.sasl.scram_credential import MECHANISMS, ScramCredential, decoy
from ottla.protocol.schema import Message

CHECKED = frozenset({"PLAIN", "GSSAPI"})
"""The mechanisms for which the settings list the users, or a KDC knows them."""
RAW = 0
"""The version of SaslHandshake after which SASL messages come without a header."""
Defer = Callable[[Callable[[], None]], None]
"""Has a callback called at the end of the loop's turn, when the state machine of the quorum is at rest."""
Incarnation = tuple[int, int]
"""The node id and the epoch of a broker."""


class NoScramCredentials(ScramCredentials):
    """The passwords of a controller: its settings list all users."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._right = {}

    def find_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return None

    def find_any(self, user: str) -> tuple[str, ScramCredential]:
        return MECHANISMS[1], decoy(MECHANISMS[1], self._secret, user)


def ensure_listed(security: ListenerSecurity) -> None:
    """Raise ConfigError if a listener enables a mechanism that a controller cannot check."""
    if security.with_sasl and not CHECKED.issuperset(security.mechanisms):
        raise ConfigError(
            f"listener {security.name} of a controller takes {','.join(security.mechanisms)}: it can check PLAIN alone, whose users "
            f"are listed in listener.name.{security.name.lower()}.plain.sasl.jaas.config, and GSSAPI, which is Kerberos; set "
            f"listener.name.{security.name.lower()}.sasl.enabled.mechanisms=PLAIN, or use SSL with ssl.client.auth=required"
        )


class Responder:
    """Takes the response to one request: while the request is handled, or later.

    A response may come while the quorum's state machine is at work. The next request of the same connection must not
    start in the middle of that, so late responses are deferred to the end of the turn.
    """

    def __init__(self, call: Call, defer: Defer) -> None:
        self._call = call
        self._defer = defer
        self._is_returned = False
        self._response: Message | None = None

    def __call__(self, response: Message) -> None:
        if self._is_returned:
            self._defer(lambda: self._call.answer(response))
        else:
            self._response = response

    def outcome(self) -> Message | Outcome:
        """Return the response, or that it comes later."""
        self._is_returned = True
        return Outcome.LATER if self._response is None else self._response


class ControllerRequests:
    """The request table of the controller role."""

    has_quotas = has_due = False

    def __init__(
        self,
        calls: ControllerCalls,
        authentication: Authentication,
        slow_request_ms: int,
        suspect: Callable[[Incarnation], None],
        registered: Callable[[BrokerRegistrationRequest], None],
        defer: Defer,
    ) -> None:
        """`suspect` is called if a broker has closed its connection; `registered` if its registration was rejected as a duplicate."""
        self._calls = calls
        self._authentication = authentication
        self.slow_request_ms = slow_request_ms
        self._suspect = suspect
        self._duplicate = registered
        self._brokers: dict[Hashable, Incarnation] = {}
        """The brokers that sent a heartbeat, by their connections."""
        self._defer = defer

    def count_use(self, call: Call, work: Work) -> Work:
        return work

    def may_be_awaited(self, frame: memoryview) -> bool:
        return False

    def answer_directly(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        return False

    def begin(self, resumes: Resumes, connection: Connection, frame: memoryview, now: float) -> tuple[Call, Work]:
        header, position = decode_header(frame, CONTROLLER_APIS)
        call = Call(resumes, connection, header, now, len(frame))
        api, versions = APIS[header.api_key], find_versions(header.api_key)
        if header.api_version in versions:
            request = read_request(api.request, header.api_version, frame, position)
            return call, lambda: self._handle(call, request)
        if header.api_key != ApiVersionsRequest.KEY:
            raise ProtocolError(f"unsupported version {header.api_version} of {api.name}: supported are {versions}")
        call.response_version = 0
        return call, lambda: api_versions(known=False)

    def handle_disconnect(self, connection: Connection) -> None:
        broker = self._brokers.pop(connection.channel_id, None)
        if broker is not None:
            self._suspect(broker)

    def _handle(self, call: Call, request: Any) -> Message | Outcome:
        respond = Responder(call, self._defer)
        match request:
            case SaslHandshakeRequest():
                is_raw = call.version == RAW
                return SaslHandshakeResponse(
                    *self._authentication.shake_hands(call.connection, request.mechanism, raw=is_raw)
                )
            case SaslAuthenticateRequest():
                self._authenticate(call.connection, request, respond)
            case BrokerRegistrationRequest():
                self._route(call, request, lambda response: self._register(request, response, respond))
            case _:
                if isinstance(request, BrokerHeartbeatRequest):
                    self._brokers[call.connection.channel_id] = request.broker_id, request.broker_epoch
                self._route(call, request, respond)
        return respond.outcome()

    def _route(self, call: Call, request: Any, respond: Callable[[Message], None]) -> None:
        self._calls.handle_client_request(read_requester(call), request, call.version, respond)

    def _authenticate(
        self, connection: Connection, request: SaslAuthenticateRequest, respond: Callable[[Message], None]
    ) -> None:
        def reply(step: LoginAnswer) -> None:
            respond(SaslAuthenticateResponse(*step))

        self._authentication.authenticate(connection, bytes(request.auth_bytes), reply)

    def _register(self, request: BrokerRegistrationRequest, response: Any, respond: Callable[[Message], None]) -> None:
        respond(response)
        if response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self._duplicate(request)
