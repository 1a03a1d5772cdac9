"""Request tokens with client credentials from an HTTPS endpoint (RFC 6749, 4.4).

The request blocks and runs on a thread of its own. It connects to the configured URL only: no redirects, no proxies,
only `https`.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.parse

from ottla.errors import ConfigError, OttlaError
from ottla.security.security import ClientCredentials

MAX_RESPONSE_BYTES = 1024 * 1024
RETRIABLE_STATUSES = (408, 425, 429, 500, 502, 503, 504)


class TokenError(OttlaError):
    """No token is available. The message states the reason and contains no secret."""


class RetriableTokenError(TokenError):
    """No token is available now; a retry may succeed."""


def https_context(ca_location: str | None) -> ssl.SSLContext:
    """Return the TLS context that verifies the endpoint."""
    try:
        return ssl.create_default_context(cafile=ca_location)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "it contains no PEM certificate"
        raise ConfigError(f"https.ca.location = {ca_location}: it cannot be read: {reason}") from None


def request_token(
    credentials: ClientCredentials, context: ssl.SSLContext, connect_seconds: float, read_seconds: float
) -> tuple[str, float | None]:
    """Return a token and its lifetime in seconds, or None if the endpoint states no lifetime."""
    url = urllib.parse.urlsplit(credentials.url)
    endpoint = f"the token endpoint {url.hostname}"
    try:
        status, body = post_request(url, credentials, context, connect_seconds, read_seconds)
    except ssl.SSLCertVerificationError as error:
        raise TokenError(
            f"{endpoint}: its certificate is not trusted ({error.verify_message}); check https.ca.location"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RetriableTokenError(f"{endpoint} did not respond: {describe_error(error)}") from None
    if status in RETRIABLE_STATUSES:
        raise RetriableTokenError(f"{endpoint} returned HTTP status {status}")
    return parse_response(endpoint, status, body)


def post_request(
    url: urllib.parse.SplitResult,
    credentials: ClientCredentials,
    context: ssl.SSLContext,
    connect_seconds: float,
    read_seconds: float,
) -> tuple[int, bytes]:
    """Send the request and return the status and the body."""
    form = {"grant_type": "client_credentials", **({"scope": credentials.scope} if credentials.scope else {})}
    headers = {
        "Authorization": authorization(credentials),
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=connect_seconds, context=context)
    try:
        connection.connect()
        connection.sock.settimeout(read_seconds)
        path = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
        connection.request("POST", path, urllib.parse.urlencode(form), headers)
        response = connection.getresponse()
        return response.status, response.read(MAX_RESPONSE_BYTES + 1)
    finally:
        connection.close()


def authorization(credentials: ClientCredentials) -> str:
    """Return the Authorization header of the client (RFC 7617; RFC 6749, 2.3.1)."""
    reason = (credentials.client_id, credentials.client_secret.value)
    if credentials.header_urlencode:
        reason = (urllib.parse.quote_plus(reason[0]), urllib.parse.quote_plus(reason[1]))
    return "Basic " + base64.b64encode(":".join(reason).encode()).decode()


def parse_response(endpoint: str, status: int, body: bytes) -> tuple[str, float | None]:
    """Parse the response. Raises TokenError with the endpoint's error code if there is no token."""
    try:
        response = json.loads(body) if len(body) <= MAX_RESPONSE_BYTES else None
    except (ValueError, RecursionError):
        response = None
    if not isinstance(response, dict):
        raise TokenError(f"{endpoint} returned HTTP status {status} without JSON; check the endpoint's URL")
    token = response.get("access_token")
    if status != 200 or not isinstance(token, str) or not token:
        error = response.get("error")
        reason = f": {error}" if isinstance(error, str) and error.isprintable() and len(error) < 100 else ""
        raise TokenError(
            f"{endpoint} returned no token (HTTP status {status}{reason}); check the client's id, secret and scope"
        )
    lifetime = response.get("expires_in")
    return token, float(lifetime) if isinstance(lifetime, int | float) and not isinstance(
        lifetime, bool
    ) and lifetime > 0 else None


def describe_error(error: Exception) -> str:
    """Describe an error in a few words."""
    if isinstance(error, TimeoutError):
        return "it timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
