"""Who gives tokens to clients and keys to brokers, over HTTPS: OAuth's client credentials, and a JWKS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_plus

CLIENT_ID, CLIENT_SECRET = "ottla-client", "client+s3cret/="


class IdentityProvider:
    """One client, one token that `make_token` makes, and the keys that it is told."""

    def __init__(self, context: ssl.SSLContext, make_token: Callable[[], str], keys: dict[str, Any]) -> None:
        self.keys = keys
        self.make_token = make_token
        self.redirected_to = ""
        """Where whoever asks for keys is sent instead."""
        self.asked: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        self.token_url, self.keys_url = f"{self.url}/token", f"{self.url}/keys"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked.append(self.path)
                if provider.redirected_to and self.path == "/keys":
                    self.answer(302, {}, {"Location": provider.redirected_to})
                else:
                    self.answer(200, provider.keys)

            def do_POST(self) -> None:
                provider.asked.append(self.path)
                self.rfile.read(int(self.headers["Content-Length"]))
                told = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode().split(":", 1)
                if [CLIENT_ID, CLIENT_SECRET] not in (told, [unquote_plus(each) for each in told]):
                    self.answer(401, {"error": "invalid_client"})
                else:
                    made = provider.make_token()
                    self.answer(200, {"access_token": made, "expires_in": 300, "token_type": "Bearer"})

            def answer(self, status: int, said: dict[str, Any], headers: dict[str, str] | None = None) -> None:
                body = json.dumps(said).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *ignored: object) -> None:
                pass

        return Handler


@contextmanager
def identity_provider(
    context: ssl.SSLContext, make_token: Callable[[], str], keys: dict[str, Any]
) -> Iterator[IdentityProvider]:
    """One that runs."""
    provider = IdentityProvider(context, make_token, keys)
    thread = threading.Thread(target=provider.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
        thread.join(30)
