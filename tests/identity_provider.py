"""An OAuth 2.0 server of Authlib with a JWKS: tokens for clients and keys for brokers, over HTTPS."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from flask import Flask, Response, jsonify, redirect, request
from werkzeug.serving import WSGIRequestHandler, make_server

CLIENT_ID, CLIENT_SECRET = "ottla-client", "client+s3cret/="
logging.getLogger("werkzeug").setLevel(logging.CRITICAL)


class TheClient(ClientMixin):  # type: ignore[misc]
    """The client that may request tokens, for itself and with its secret."""

    client_id = CLIENT_ID

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"

    def get_allowed_scope(self, scope: str) -> str:
        return scope


def client_of(name: str) -> TheClient | None:
    return TheClient() if name == CLIENT_ID else None


def forgotten(token: dict[str, Any], request: object) -> None:
    """Do not save the token: it is verified by its signature and never looked up."""


class IdentityProvider:
    """A provider with one client.

    `make_token` creates its tokens, valid for `seconds`, and `keys` is the served JWKS.
    """

    def __init__(
        self, context: ssl.SSLContext, make_token: Callable[[float], str], keys: dict[str, Any], seconds: float = 300
    ) -> None:
        self.make_token, self.keys, self.seconds = make_token, keys, seconds
        self.failures = 0
        """The number of further requests that fail with status 503."""
        self.redirected_to = ""
        """The URL to which requests for keys are redirected; "" for no redirect."""
        self.asked: list[str] = []
        self.scopes: list[str | None] = []
        """The requested scope of each token request."""
        app = self._app()
        self.server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet, ssl_context=context)
        self.url = f"https://localhost:{self.server.server_port}"
        self.token_url, self.keys_url = f"{self.url}/token", f"{self.url}/keys"

    def _app(self) -> Flask:
        app = Flask("identity provider")
        tokens = AuthorizationServer(app, query_client=client_of, save_token=forgotten)
        tokens.register_grant(ClientCredentialsGrant)
        tokens.register_token_generator("default", self._token)
        app.add_url_rule("/token", view_func=lambda: self._answer(tokens), methods=["POST"])
        app.add_url_rule("/keys", view_func=self._keys)
        app.before_request(lambda: self.asked.append(request.path))
        return app

    def _token(self, *, scope: str | None = None, **ignored: object) -> dict[str, Any]:
        self.scopes.append(scope)
        return {"access_token": self.make_token(self.seconds), "expires_in": self.seconds, "token_type": "Bearer"}

    def _answer(self, tokens: AuthorizationServer) -> Response:
        if self.failures:
            self.failures -= 1
            return Response(status=503)
        answer: Response = tokens.create_token_response()
        return answer

    def _keys(self) -> Any:
        return redirect(self.redirected_to) if self.redirected_to else jsonify(self.keys)


class Quiet(WSGIRequestHandler):  # type: ignore[misc]
    """A request handler without a log."""

    def log(self, *ignored: object) -> None:
        pass


@contextmanager
def identity_provider(
    context: ssl.SSLContext, make_token: Callable[[float], str], keys: dict[str, Any]
) -> Iterator[IdentityProvider]:
    """Run an identity provider."""
    provider = IdentityProvider(context, make_token, keys)
    thread = threading.Thread(target=provider.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
        thread.join(30)
