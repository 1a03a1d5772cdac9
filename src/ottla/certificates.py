"""Certificates for development and tests: an authority, and certificates signed by it.

Keys are of the curve P-256; an authority is valid for ten years, its certificates for one. Files are never overwritten,
because a new authority would invalidate the certificates of the old one.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ottla.errors import ConfigError
from ottla.extras import extra

AUTHORITY_DAYS, DAYS = 3650, 365
AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca-key.pem"
PRIVATE = 0o600


class Identity(Struct, frozen=True):
    """A certificate and its key, as PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Identity([hidden])"

    @property
    def both(self) -> str:
        """The content of a file for `ssl.keystore.location`."""
        return self.certificate + self.key


class Authority:
    """A certificate authority."""

    def __init__(self, own: Identity) -> None:
        self.own = own

    @classmethod
    def made(cls, name: str = "Ottla's authority for trying") -> Authority:
        """Return a new authority."""
        x509, _, _ = import_cryptography()
        key, subject = new_key(), make_subject(name)
        builder = certificate_builder(subject, subject, key, AUTHORITY_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        return cls(sign_identity(builder, key, key))

    @classmethod
    def in_folder(cls, folder: Path) -> Authority:
        """Return the authority that `ottla certificates authority` created in a folder."""
        try:
            return cls(Identity((folder / AUTHORITY).read_text(), (folder / AUTHORITY_KEY).read_text()))
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}; `ottla certificates authority {folder}` creates an authority"
            ) from None

    def server(self, hosts: Sequence[str]) -> Identity:
        """Return a certificate for a server with these names and addresses."""
        x509, oids, _ = import_cryptography()
        names = x509.SubjectAlternativeName([host_name(host) for host in hosts])
        return self._signed(hosts[0], oids.SERVER_AUTH, [names])

    def client(self, name: str) -> Identity:
        """Return a certificate for a client; its principal is `User:CN=name`."""
        _, oids, _ = import_cryptography()
        return self._signed(name, oids.CLIENT_AUTH, [])

    def _signed(self, name: str, usage: Any, more: Sequence[Any]) -> Identity:
        x509, _, serialization = import_cryptography()
        try:
            issuer = x509.load_pem_x509_certificate(self.own.certificate.encode())
            issuer_key = serialization.load_pem_private_key(self.own.key.encode(), None)
        except (ValueError, TypeError):
            raise ConfigError(f"{AUTHORITY} and {AUTHORITY_KEY} are not a certificate and its key, as PEM") from None
        key = new_key()
        builder = certificate_builder(make_subject(name), issuer.subject, key, DAYS)
        for each in (x509.BasicConstraints(ca=False, path_length=None), x509.ExtendedKeyUsage([usage]), *more):
            builder = builder.add_extension(each, critical=False)
        made = sign_identity(builder, issuer_key, key)
        return Identity(made.certificate + self.own.certificate, made.key)


def import_cryptography() -> tuple[Any, Any, Any]:
    """Return the modules of `cryptography` for certificates, key usages and serialization."""
    with extra("security"):
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID
    return x509, ExtendedKeyUsageOID, serialization


def new_key() -> Any:
    with extra("security"):
        from cryptography.hazmat.primitives.asymmetric import ec
    return ec.generate_private_key(ec.SECP256R1())


def make_subject(name: str) -> Any:
    x509, _, _ = import_cryptography()
    from cryptography.x509.oid import NameOID

    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError:
        raise ConfigError(f"invalid name {name!r} for a certificate: expected 1 to 64 characters") from None


def host_name(host: str) -> Any:
    """Return a host name or an address in the form of certificates."""
    x509, _, _ = import_cryptography()
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise ConfigError(f"invalid host {host!r} for a certificate: expected an ASCII name, or an address") from None


def certificate_builder(subject: Any, issuer: Any, key: Any, days: int) -> Any:
    """Return a builder with the common properties; valid since one hour ago, because clocks differ."""
    x509, _, _ = import_cryptography()
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
        now + datetime.timedelta(days=days)
    )


def sign_identity(builder: Any, signer: Any, key: Any) -> Identity:
    """Return the signed certificate with its key."""
    _, _, s = import_cryptography()
    from cryptography.hazmat.primitives import hashes

    certificate: bytes = builder.sign(signer, hashes.SHA256()).public_bytes(s.Encoding.PEM)
    pem: bytes = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    return Identity(certificate.decode(), pem.decode())


def write_new(path: Path, text: str) -> Path:
    """Write a file that only its owner can read; raise ConfigError if it exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        raise ConfigError(f"{path} exists already, and is not overwritten: move it, or choose another path") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return path
