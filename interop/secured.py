"""An Apache Kafka with every listener there is, and who may log in there."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from rivals import apache_kafka as rival
from tests.certificates import Authority

USER, PASSWORD = "alice", 'al1ce;"s-secret'
STORE_PASSWORD = "store-secret"
CLIENT_ID, CLIENT_SECRET = "ottla-client", "client+s3cret/="
SESSION_MS = 4000
LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL", "MUTUAL")
JAAS = "org.apache.kafka.common.security."


def quoted(text: str) -> str:
    """In a line of JAAS."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


@contextmanager
def secured_kafka(authority: Authority) -> Iterator[rival.ApacheKafka]:
    """One whose sessions end after some seconds, so that clients log in again."""
    folder = authority.folder
    store = folder / "broker.p12"
    store.write_bytes(authority.certificate().pkcs12(STORE_PASSWORD))
    plain = f'{JAAS}plain.PlainLoginModule required user_{USER}="{quoted(PASSWORD)}";'
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": authority.file,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        name = f"listener.name.{listener}"
        settings |= {
            f"{name}.plain.sasl.jaas.config": plain.replace("\\", "\\\\"),
            f"{name}.scram-sha-256.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule required;",
            f"{name}.scram-sha-512.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule required;",
            f"{name}.oauthbearer.sasl.jaas.config": (
                f'{JAAS}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            ),
        }
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    formatted = [word for each in scram for word in ("--add-scram", each)]
    with rival.apache_kafka(settings, listeners=LISTENERS, formatted_with=formatted) as kafka:
        yield kafka


def unsigned_token(seconds: float) -> str:
    """A token that Kafka's validator for tries takes: nobody has signed it."""
    now = time.time()
    claims = {"sub": USER, "iat": now - 1, "exp": now + seconds, "scope": "kafka"}
    parts = [json.dumps({"alg": "none"}), json.dumps(claims), ""]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


class TokenEndpoint:
    """Gives tokens to one client, over HTTPS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.seconds = 300.0
        self.asked: list[dict[str, Any]] = []
        self.failures = 0
        """How many times it is to be out of order yet."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_address[1]}/oauth2/token"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, answer = endpoint.answer(self.headers["Authorization"], form)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *ignored: object) -> None:
                pass

        return Handler

    def answer(self, authorization: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        from urllib.parse import unquote_plus

        self.asked.append(form)
        if self.failures:
            self.failures -= 1
            return 503, {}
        told = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        if [unquote_plus(each) for each in told] != [CLIENT_ID, CLIENT_SECRET]:
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": unsigned_token(self.seconds), "expires_in": self.seconds, "token_type": "Bearer"}


@contextmanager
def token_endpoint(authority: Authority) -> Iterator[TokenEndpoint]:
    """One that runs."""
    endpoint = TokenEndpoint(authority.server_context())
    thread = threading.Thread(target=endpoint.server.serve_forever)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join(30)


def client_store(authority: Authority, folder: Path) -> str:
    """A client's certificate and key in a PEM file."""
    cert = authority.certificate("me")
    path = folder / "client.pem"
    path.write_text(cert.chain + cert.key)
    return str(path)
