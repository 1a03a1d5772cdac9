"""Tokens by client credentials from an HTTPS endpoint (RFC 6749, 4.4).

Blocks, on a thread that is made for it. Goes nowhere but where it was told to: no redirects, no proxies, `https` alone.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.parse

from ottla.errors import ConfigError, OttlaError
from ottla.security.security import ClientCredentials

MOST_BYTES = 1024 * 1024
PASSING = (408, 425, 429, 500, 502, 503, 504)


class TokenError(OttlaError):
    """There is no token; the text says why, and has no secret in it."""


class PassingTokenError(TokenError):
    """There is no token now, and may be one soon."""


def https_context(ca_location: str | None) -> ssl.SSLContext:
    """Whom to believe to be the endpoint."""
    try:
        return ssl.create_default_context(cafile=ca_location)
    except (OSError, ssl.SSLError) as error:
        told = error.strerror or "there is no certificate in PEM in it"
        raise ConfigError(f"https.ca.location = {ca_location}: it cannot be read: {told}") from None


def ask_for_token(
    asked: ClientCredentials, context: ssl.SSLContext, connect_seconds: float, read_seconds: float
) -> tuple[str, float | None]:
    """A token, and for how many seconds it is good if the endpoint says so."""
    url = urllib.parse.urlsplit(asked.url)
    where = f"the token endpoint {url.hostname}"
    try:
        status, body = posted(url, asked, context, connect_seconds, read_seconds)
    except ssl.SSLCertVerificationError as error:
        raise TokenError(
            f"{where}: its certificate is not believed ({error.verify_message}); look at https.ca.location"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PassingTokenError(f"{where} did not answer: {told_of(error)}") from None
    if status in PASSING:
        raise PassingTokenError(f"{where} answered with HTTP status {status}")
    return read_answer(where, status, body)


def posted(
    url: urllib.parse.SplitResult,
    asked: ClientCredentials,
    context: ssl.SSLContext,
    connect_seconds: float,
    read_seconds: float,
) -> tuple[int, bytes]:
    """Status and body."""
    form = {"grant_type": "client_credentials", **({"scope": asked.scope} if asked.scope else {})}
    headers = {
        "Authorization": authorization(asked),
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=connect_seconds, context=context)
    try:
        connection.connect()
        connection.sock.settimeout(read_seconds)
        path = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
        connection.request("POST", path, urllib.parse.urlencode(form), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES + 1)
    finally:
        connection.close()


def authorization(asked: ClientCredentials) -> str:
    """The header that says who asks (RFC 7617; RFC 6749, 2.3.1)."""
    told = (asked.client_id, asked.client_secret.value)
    if asked.header_urlencode:
        told = (urllib.parse.quote_plus(told[0]), urllib.parse.quote_plus(told[1]))
    return "Basic " + base64.b64encode(":".join(told).encode()).decode()


def read_answer(where: str, status: int, body: bytes) -> tuple[str, float | None]:
    """The token of an answer; TokenError says what the endpoint has against us."""
    try:
        answer = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise TokenError(f"{where} answered with HTTP status {status} and no JSON; look at the endpoint's URL")
    token = answer.get("access_token")
    if status != 200 or not isinstance(token, str) or not token:
        error = answer.get("error")
        told = f": {error}" if isinstance(error, str) and error.isprintable() and len(error) < 100 else ""
        raise TokenError(
            f"{where} gave no token (HTTP status {status}{told}); look at the client's id, secret and scope"
        )
    span = answer.get("expires_in")
    return token, float(span) if isinstance(span, int | float) and not isinstance(span, bool) and span > 0 else None


def told_of(error: Exception) -> str:
    """An error in a few words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
