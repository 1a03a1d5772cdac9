"""A broker with authentication, and clients for each authentication method."""

from __future__ import annotations

import json
import ssl
import struct
import time
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.conversation import Conversation
from ottla.protocol.sasl.plain import PlainConversation
from ottla.protocol.sasl.scram import ScramConversation
from tests.broker.wire import Wire
from tests.certificates import Authority

USER, PASSWORD = "alice", "al1ce,s-s3cret"
LISTED, LISTED_PASSWORD = "bob", 'b0b;"s'
LISTENERS = (
    "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
)
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
}
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
AUDIENCE = "kafka"
ISSUER = "me"
KEY: Any = RSAKey.generate_key(2048, {"kid": "one"})
CURVE: Any = ECKey.generate_key("P-256", {"kid": "two"})
STRANGER: Any = RSAKey.generate_key(2048, {"kid": "one"})


def token(key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
    """Return a token, valid unless claims are given; a claim of None is left out."""
    now = time.time()
    all_claims = {"sub": USER, "aud": AUDIENCE, "iss": ISSUER, "iat": now, "exp": now + 300, **claims}
    said = {name: value for name, value in all_claims.items() if value is not None}
    made: str = jwt.encode({"alg": algorithm, "kid": key.kid}, said, key, algorithms=[algorithm])
    return made


def lasting(seconds: float, key: Any = KEY) -> str:
    """A token that is good for so long."""
    return token(key, exp=time.time() + seconds)


def settings_of(authority: Authority, folder: Path) -> dict[str, Any]:
    """The settings of a broker with all these listeners."""
    made = authority.certificate()
    (folder / "server.pem").write_text(made.chain + made.key)
    (folder / "keys.json").write_text(json.dumps(KeySet([KEY, CURVE]).as_dict(private=False)))
    quoted = LISTED_PASSWORD.replace('"', '\\"')
    return {
        "listener_security_protocol_map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "ssl_keystore_location": str(folder / "server.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.location": authority.file,
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^.*O=trustme v([0-9]+).*$/cert-$1/L,DEFAULT",
        "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "add_scram": f'SCRAM-SHA-256=[name={USER},password="{PASSWORD}"]\n'
        f'SCRAM-SHA-512=[name={USER},password="{PASSWORD}",iterations=8192]',
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{JAAS} user_{LISTED}="{quoted}";',
        "sasl_oauthbearer_jwks_file": str(folder / "keys.json"),
        "sasl_oauthbearer_expected_audience": AUDIENCE,
        "sasl_oauthbearer_expected_issuer": ISSUER,
        "connection_failed_authentication_delay_ms": 10,
        "sasl_server_max_receive_size": 20_000,
        "delegation_token_secret_key": "s3cret-of-tokens",
    }


class Secured:
    """The broker, and settings for our clients."""

    def __init__(self, broker: Broker, authority: Authority, folder: Path) -> None:
        self.broker, self.authority, self.folder = broker, authority, folder

    def at(self, listener: str, **more: Any) -> dict[str, Any]:
        protocol = PROTOCOLS[listener]
        tls = {"ssl.truststore.location": self.authority.file} if protocol.endswith("SSL") else {}
        address = self.broker.addresses[listener]
        return {"bootstrap.servers": address, "security.protocol": protocol, **tls, **more}

    def login(self, mechanism: str, name: str = USER, password: str = PASSWORD, at: str = "SASL_SSL") -> dict[str, Any]:
        return self.at(at, **{"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password})

    def wire(self, listener: str) -> Wire:
        """A bare connection, encrypted where the listener is."""
        wire = Wire(self.broker.addresses[listener])
        if PROTOCOLS[listener].endswith("SSL"):
            context = ssl.create_default_context(cafile=self.authority.file)
            wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        return wire


def log_in(wire: Wire, mechanism: str = "SCRAM-SHA-256", name: str = USER, password: str = PASSWORD) -> Any:
    """Log a bare connection in; the last answer."""
    talk: Conversation = (
        PlainConversation(name, password)
        if mechanism == "PLAIN"
        else ScramConversation(mechanism, name, password, "n0nce")
    )
    assert wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    message, answer = talk.next(b""), None
    while message is not None:
        answer = wire.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        if answer.error_code:
            break
        message = talk.next(bytes(answer.auth_bytes))
    return answer


def bare(wire: Wire, message: bytes) -> bytes:
    """A message of SASL without a request around it, and the answer to it."""
    wire.socket.sendall(struct.pack(">i", len(message)) + message)
    return bytes(wire.receive_frame())
