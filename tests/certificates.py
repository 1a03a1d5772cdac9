"""Certificate authorities and certificates for a single test."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

import trustme

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
LATER = datetime.datetime(2020, 2, 1, tzinfo=datetime.UTC)


class Authority:
    """A certificate authority, with a folder for its certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ca: Any = trustme.CA()
        self.pem: str = self._ca.cert_pem.bytes().decode()

    @property
    def file(self) -> str:
        """The authority's own certificate, in a file."""
        return self.write("ca.pem", self.pem)

    def write(self, name: str, text: str) -> str:
        """Write a text to a file of the folder."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def certificate(self, *names: str, expired: bool = False) -> Certificate:
        """Issue a certificate for a server or a client."""
        span = {"not_before": LONG_AGO, "not_after": LATER} if expired else {}
        return Certificate(self._ca.issue_cert(*names or ("127.0.0.1", "localhost"), **span))

    def server_context(self, certificate: Certificate | None = None, *, asks: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a server. With `asks`, it requires a client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (certificate or self.certificate()).made.configure_cert(context)
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.pem)
        return context


class Certificate:
    """A certificate and its key, as PEM."""

    def __init__(self, made: Any) -> None:
        self.made = made
        self.chain: str = "".join(each.bytes().decode() for each in made.cert_chain_pems)
        self.key: str = made.private_key_pem.bytes().decode()

    @property
    def java_key(self) -> str:
        """The key in the format of Java, PKCS8."""
        s, key = loaded(self.key)
        text: str = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()).decode()
        return text

    def encrypted_key(self, password: str) -> str:
        """Return the private key, encrypted with the password."""
        s, key = loaded(self.key)
        text: bytes = key.private_bytes(
            s.Encoding.PEM, s.PrivateFormat.PKCS8, s.BestAvailableEncryption(password.encode())
        )
        return text.decode()

    def pkcs12(self, password: str) -> bytes:
        """Return certificate and key in the format of Java's keytool."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import pkcs12

        s, key = loaded(self.key)
        cert, *others = x509.load_pem_x509_certificates(self.chain.encode())
        data: bytes = pkcs12.serialize_key_and_certificates(
            b"me", key, cert, others, s.BestAvailableEncryption(password.encode())
        )
        return data


def loaded(key: str) -> tuple[Any, Any]:
    """Return cryptography's serialization module, and the key."""
    from cryptography.hazmat.primitives import serialization

    return serialization, serialization.load_pem_private_key(key.encode(), None)


def trust_pkcs12(pem: str, password: str) -> bytes:
    """Return a trust store in the format of Java's keytool."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

    s, cert = loaded_certificate(pem)
    assert isinstance(cert, x509.Certificate)
    trusted = [pkcs12.PKCS12Certificate(cert, b"ca")]
    data: bytes = pkcs12.serialize_java_truststore(trusted, s.BestAvailableEncryption(password.encode()))
    return data


def loaded_certificate(pem: str) -> tuple[Any, Any]:
    """Return cryptography's serialization module, and the certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    return serialization, x509.load_pem_x509_certificate(pem.encode())
