"""What is wrong when TLS does not come about, and the remedy: one sentence for each of OpenSSL's reasons.

Pure.
"""

from __future__ import annotations

import ssl

from ottla.network.refusal import HungUp, Refusal

PLAINTEXT_THERE = "it does not speak TLS: this is a plaintext port; set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or take the broker's port for TLS"
HUNG_UP = HungUp(
    "it closed the connection amid the TLS handshake: it may be a plaintext port (set security.protocol=PLAINTEXT or "
    "SASL_PLAINTEXT, or take the port for TLS), or one that is just starting"
)
CLIENT_HUNG_UP = HungUp("it closed the connection amid the TLS handshake, and may not trust this broker's certificate")
NEEDS_CERTIFICATE = (
    "the broker wants a certificate of this client: give it with ssl.keystore.location, or ssl.certificate.location and "
    "ssl.key.location"
)
NAME_REMEDY = "use a name that is in the certificate (brokers tell clients theirs, advertised.listeners), or set ssl.endpoint.identification.algorithm to nothing if the name does not matter"

CERTIFICATE: dict[int, str] = {
    7: "the broker's certificate was signed by another authority than the one of that name that is trusted here: name its certificate with ssl.truststore.location",
    9: "the broker's certificate is not valid yet: look at the clock of this machine, or have the broker's certificate made anew",
    10: "the broker's certificate has expired, or one of those that signed it: have it renewed, or look at the clock of this machine",
    18: "the broker's certificate is self-signed, and is not among those that are trusted: name it with ssl.truststore.location",
    19: "the broker's certificate was signed by an authority that is not trusted here: name its certificate with ssl.truststore.location",
    20: "the broker's certificate was signed by an authority that is not trusted here: name its certificate with ssl.truststore.location",
    21: "the broker's certificate was signed by an authority that is not trusted here: name its certificate with ssl.truststore.location",
    23: "the broker's certificate was revoked: have another one made",
}
"""By OpenSSL's number of what is wrong with a certificate."""
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
    "ALERT_UNKNOWN_CA": "the broker does not trust who signed this client's certificate: have one made by an authority that is in the broker's truststore",
    "ALERT_BAD_CERTIFICATE": "the broker refuses this client's certificate: look at ssl.keystore.location, and at the broker's log",
    "ALERT_CERTIFICATE_EXPIRED": "this client's certificate has expired: have it renewed (ssl.keystore.location)",
    "ALERT_CERTIFICATE_REVOKED": "this client's certificate was revoked: have another one made (ssl.keystore.location)",
    "ALERT_CERTIFICATE_UNKNOWN": "the broker refuses this client's certificate: look at ssl.keystore.location, and at the broker's log",
    "ALERT_UNSUPPORTED_CERTIFICATE": "the broker refuses this client's certificate as one of a kind that it does not take: look at ssl.keystore.location",
    "ALERT_ACCESS_DENIED": "the broker refuses this client's certificate: look at ssl.keystore.location",
    "PROTOCOL_VERSION": "there is no version of TLS that both sides speak: look at ssl.enabled.protocols",
    "UNSUPPORTED_PROTOCOL": "there is no version of TLS that both sides speak: look at ssl.enabled.protocols",
    "NO_PROTOCOLS_AVAILABLE": "there is no version of TLS that both sides speak: look at ssl.enabled.protocols",
    "UNRECOGNIZED_NAME": "the broker has no certificate for the name it was asked by: use the name it advertises",
}


def handshake_reason(error: ssl.SSLError, host: str, shows_certificate: bool) -> str:
    """Why a handshake failed; a Refusal where that will not change by itself."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Refusal(certificate_reason(error, host))
    return alert_reason(error, shows_certificate)


def stream_reason(error: ssl.SSLError, shows_certificate: bool) -> str:
    """Why a connection that stood cannot go on; with TLS 1.3 the broker looks at our certificate after the handshake."""
    return alert_reason(error, shows_certificate)


def certificate_reason(error: ssl.SSLCertVerificationError, host: str) -> str:
    """What is wrong with the broker's certificate."""
    code = getattr(error, "verify_code", 0)
    if code in WRONG_NAME:
        return f"the broker's certificate is not for {host!r}: {NAME_REMEDY}"
    told = CERTIFICATE.get(code)
    return told or f"the broker's certificate is not taken: {getattr(error, 'verify_message', error)}"


def alert_reason(error: ssl.SSLError, shows_certificate: bool) -> str:
    """What OpenSSL or the broker has against the connection."""
    reason = error.reason or ""
    if any(mark in reason for mark in PLAINTEXT_ANSWERS) and "ALERT" not in reason:
        return Refusal(PLAINTEXT_THERE)
    for mark, told in ALERTS.items():
        if mark in reason:
            return Refusal(NEEDS_CERTIFICATE if "CERTIFICATE" in mark and not shows_certificate else told)
    if "HANDSHAKE_FAILURE" in reason:
        also = "" if shows_certificate else f", or {NEEDS_CERTIFICATE}"
        return Refusal(
            f"the broker and this client have no cipher in common: look at ssl.cipher.suites and ssl.enabled.protocols{also}"
        )
    if isinstance(error, ssl.SSLEOFError) or "EOF" in reason:
        return HUNG_UP
    return f"TLS failed: {spelled(reason) or error}"


def spelled(reason: str) -> str:
    """OpenSSL's name of a reason as words."""
    return reason.replace("_", " ").lower()


FROM_CLIENTS = {
    "UNKNOWN_CA": "the client does not trust who signed this broker's certificate",
    "CERTIFICATE_EXPIRED": "the client finds that this broker's certificate has expired",
    "BAD_CERTIFICATE": "the client does not take this broker's certificate",
    "CERTIFICATE_UNKNOWN": "the client does not take this broker's certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client showed no certificate, and must (ssl.client.auth=required)",
    "NO_SHARED_CIPHER": "the client and this broker have no cipher in common (ssl.cipher.suites)",
    "PROTOCOL_VERSION": "the client and this broker have no version of TLS in common (ssl.enabled.protocols)",
    "UNSUPPORTED_PROTOCOL": "the client and this broker have no version of TLS in common (ssl.enabled.protocols)",
}


def client_reason(error: ssl.SSLError) -> str:
    """Why a connection that came in goes no further, for the log of the broker."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed: the client's certificate is not taken: {getattr(error, 'verify_message', '') or error}"
    for mark, told in FROM_CLIENTS.items():
        if mark in reason:
            return f"TLS failed: {told}"
    if "ALERT" not in reason and any(mark in reason for mark in PLAINTEXT_ANSWERS):
        return "TLS failed: the client speaks something else; it needs security.protocol=SSL or SASL_SSL"
    if isinstance(error, ssl.SSLEOFError) or "EOF" in reason:
        return CLIENT_HUNG_UP
    return f"TLS failed: {spelled(reason) or error}"
