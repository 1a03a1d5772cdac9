"""Explanations of TLS failures, with a remedy for each of OpenSSL's reasons. Pure."""

from __future__ import annotations

import ssl

from ottla.network.refusal import ClosedInHandshake, PeerRefusal

PLAINTEXT_THERE = "it does not speak TLS: this is a plaintext port; set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or use the broker's TLS port"
HUNG_UP = ClosedInHandshake(
    "it closed the connection in the TLS handshake: it may be a plaintext port (set security.protocol=PLAINTEXT or "
    "SASL_PLAINTEXT, or use the TLS port), or one that is just starting"
)
CLIENT_HUNG_UP = ClosedInHandshake(
    "it closed the connection in the TLS handshake, and may not trust this broker's certificate"
)
NEEDS_CERTIFICATE = (
    "the broker requires a certificate of this client: set ssl.keystore.location, or ssl.certificate.location and "
    "ssl.key.location"
)
NAME_REMEDY = "use a name that is in the certificate (brokers advertise theirs by advertised.listeners), or set ssl.endpoint.identification.algorithm to nothing if the name does not matter"

CERTIFICATE: dict[int, str] = {
    7: "the broker's certificate was signed by another authority than the trusted one of the same name: add its certificate to ssl.truststore.location",
    9: "the broker's certificate is not valid yet: check the clock of this machine, or create a new certificate for the broker",
    10: "the broker's certificate has expired, or one in its chain has: renew it, or check the clock of this machine",
    18: "the broker's certificate is self-signed and not trusted: add it to ssl.truststore.location",
    19: "the broker's certificate was signed by an authority that is not trusted here: add its certificate to ssl.truststore.location",
    20: "the broker's certificate was signed by an authority that is not trusted here: add its certificate to ssl.truststore.location",
    21: "the broker's certificate was signed by an authority that is not trusted here: add its certificate to ssl.truststore.location",
    23: "the broker's certificate was revoked: create another one",
}
"""Explanations by OpenSSL's verification error code."""
WRONG_NAME = {62, 64}

PLAINTEXT_ANSWERS = (
    "WRONG_VERSION_NUMBER",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
    "UNEXPECTED_MESSAGE",
)
ALERTS: dict[str, str] = {
    "CERTIFICATE_REQUIRED": NEEDS_CERTIFICATE,
    "ALERT_UNKNOWN_CA": "the broker does not trust the authority of this client's certificate: use one signed by an authority in the broker's truststore",
    "ALERT_BAD_CERTIFICATE": "the broker rejects this client's certificate: check ssl.keystore.location, and the broker's log",
    "ALERT_CERTIFICATE_EXPIRED": "this client's certificate has expired: renew it (ssl.keystore.location)",
    "ALERT_CERTIFICATE_REVOKED": "this client's certificate was revoked: create another one (ssl.keystore.location)",
    "ALERT_CERTIFICATE_UNKNOWN": "the broker rejects this client's certificate: check ssl.keystore.location, and the broker's log",
    "ALERT_UNSUPPORTED_CERTIFICATE": "the broker rejects this client's certificate as unsupported: check ssl.keystore.location",
    "ALERT_ACCESS_DENIED": "the broker rejects this client's certificate: check ssl.keystore.location",
    "PROTOCOL_VERSION": "both sides have no common TLS version: check ssl.enabled.protocols",
    "UNSUPPORTED_PROTOCOL": "both sides have no common TLS version: check ssl.enabled.protocols",
    "NO_PROTOCOLS_AVAILABLE": "both sides have no common TLS version: check ssl.enabled.protocols",
    "UNRECOGNIZED_NAME": "the broker has no certificate for the requested name: use the name that it advertises",
}


def handshake_reason(error: ssl.SSLError, host: str, shows_certificate: bool) -> str:
    """Explain a failed handshake; a Refusal if a retry will not help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return PeerRefusal(certificate_reason(error, host))
    return alert_reason(error, shows_certificate)


def stream_reason(error: ssl.SSLError, shows_certificate: bool) -> str:
    """Explain the failure of an established connection.

    With TLS 1.3 the broker checks our certificate after the handshake.
    """
    return alert_reason(error, shows_certificate)


def certificate_reason(error: ssl.SSLCertVerificationError, host: str) -> str:
    """Explain the problem of the broker's certificate."""
    code = getattr(error, "verify_code", 0)
    if code in WRONG_NAME:
        return f"the broker's certificate is not for {host!r}: {NAME_REMEDY}"
    problem = CERTIFICATE.get(code)
    return problem or f"the broker's certificate is invalid: {getattr(error, 'verify_message', error)}"


def alert_reason(error: ssl.SSLError, shows_certificate: bool) -> str:
    """Explain an error of OpenSSL, or an alert of the broker."""
    reason = error.reason or ""
    if any(mark in reason for mark in PLAINTEXT_ANSWERS) and "ALERT" not in reason:
        return PeerRefusal(PLAINTEXT_THERE)
    for mark, problem in ALERTS.items():
        if mark in reason:
            return PeerRefusal(NEEDS_CERTIFICATE if "CERTIFICATE" in mark and not shows_certificate else problem)
    if "HANDSHAKE_FAILURE" in reason:
        also = "" if shows_certificate else f", or {NEEDS_CERTIFICATE}"
        return PeerRefusal(
            f"the broker and this client have no cipher in common: check ssl.cipher.suites and ssl.enabled.protocols{also}"
        )
    if isinstance(error, ssl.SSLEOFError) or "EOF" in reason:
        return HUNG_UP
    return f"TLS failed: {spell_reason(reason) or error}"


def spell_reason(reason: str) -> str:
    """Return OpenSSL's name of a reason as words."""
    return reason.replace("_", " ").lower()


FROM_CLIENTS = {
    "UNKNOWN_CA": "the client does not trust the authority of this broker's certificate",
    "CERTIFICATE_EXPIRED": "this broker's certificate has expired, says the client",
    "BAD_CERTIFICATE": "the client rejects this broker's certificate",
    "CERTIFICATE_UNKNOWN": "the client rejects this broker's certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, which is required (ssl.client.auth=required)",
    "NO_SHARED_CIPHER": "the client and this broker have no cipher in common (ssl.cipher.suites)",
    "PROTOCOL_VERSION": "the client and this broker have no version of TLS in common (ssl.enabled.protocols)",
    "UNSUPPORTED_PROTOCOL": "the client and this broker have no version of TLS in common (ssl.enabled.protocols)",
}


def client_reason(error: ssl.SSLError) -> str:
    """Explain the failure of an accepted connection, for the broker's log."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed: the client's certificate is invalid: {getattr(error, 'verify_message', '') or error}"
    for mark, problem in FROM_CLIENTS.items():
        if mark in reason:
            return f"TLS failed: {problem}"
    if "ALERT" not in reason and any(mark in reason for mark in PLAINTEXT_ANSWERS):
        return "TLS failed: the client does not speak TLS; it needs security.protocol=SSL or SASL_SSL"
    if isinstance(error, ssl.SSLEOFError) or "EOF" in reason:
        return CLIENT_HUNG_UP
    return f"TLS failed: {spell_reason(reason) or error}"
