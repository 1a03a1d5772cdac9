"""Read certificates and keys: PEM or PKCS12, in files or as text.

A JKS store, which only Java can read, raises an error with the command that converts it. Errors are ConfigErrors that
name the setting and never the content.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from ottla.config import Password
from ottla.errors import ConfigError
from ottla.extras import extra

CERTIFICATE = re.compile(
    r"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.+?-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.DOTALL
)
KEY = re.compile(r"-----BEGIN ((?:[A-Z]+ )*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)
JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The first bytes of Java's stores."""
MOST_BYTES = 16 * 1024 * 1024


class TlsIdentity(Struct, frozen=True):
    """A certificate with its chain and its key, as PEM."""

    chain: str
    key: Password
    password: Password | None

    def load_into(self, context: ssl.SSLContext, name: str) -> None:
        """Load them into an SSL context; raise ConfigError if they do not match or the password is wrong."""
        secret = "" if self.password is None else self.password.value
        try:
            with write_temporary_files(self.chain, self.key.value) as (chain, key):
                context.load_cert_chain(
                    chain, key, lambda: secret
                )  # without a password OpenSSL would prompt at the terminal
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{name}: {explain_mismatch(error, self)}") from None


@dataclass(frozen=True, kw_only=True)
class TrustStore:
    """A file or text with certificates of authorities; only these are trusted."""

    name: str = "ssl.truststore"
    location: str | None = None
    certificates: str | None = None
    kind: str | None = None
    """PEM or PKCS12; None: detected from the content."""
    password: Password | None = None

    def __post_init__(self) -> None:
        if self.location is not None and self.certificates is not None:
            raise ConfigError(
                f"{self.name}.location and {self.name}.certificates exclude each other: give only one of them"
            )
        if self.location is None and self.certificates is None:
            raise ConfigError(f"{self.name}.password and {self.name}.type need {self.name}.location")

    def files(self) -> list[str]:
        """Return the files that are read."""
        return [] if self.location is None else [self.location]

    def load_into(self, context: ssl.SSLContext) -> None:
        """Trust only these certificates in an SSL context."""
        where = f"{self.name}.certificates" if self.location is None else f"{self.name}.location = {self.location}"
        text = self.certificates if self.location is None else self._read(self.location)
        found = CERTIFICATE.findall(text or "")
        if not found:
            raise ConfigError(f"{where}: there is no certificate in it; it must have -----BEGIN CERTIFICATE-----")
        try:
            context.load_verify_locations(cadata="\n".join(found))
        except ssl.SSLError as error:
            raise ConfigError(f"{where}: a certificate cannot be read ({error.reason or 'not valid PEM'})") from None
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # every certificate in the store is trusted, as in Java

    def _read(self, location: str) -> str:
        data = read_file(f"{self.name}.location", location)
        if format_of(f"{self.name}.location", location, data, self.kind) == "PEM":
            return as_text(f"{self.name}.location = {location}", data)
        store = read_pkcs12(f"{self.name}.location = {location}", f"{self.name}.password", data, self.password)
        found = [store.cert, *store.additional_certs]
        return "".join(pem_of(each.certificate) for each in found if each is not None)


@dataclass(frozen=True, kw_only=True)
class KeyStore:
    """The certificate of this side, and its key."""

    name: str = "ssl.keystore"
    location: str | None = None
    """A file with PEM certificates and key, or PKCS12."""
    chain_location: str | None = None
    key_location: str | None = None
    """Separate files, as librdkafka's settings."""
    chain: str | None = None
    key: Password | None = None
    """Both as PEM text."""
    kind: str | None = None
    store_password: Password | None = None
    key_password: Password | None = None

    def files(self) -> list[str]:
        """Return the files that are read."""
        return [each for each in (self.location, self.chain_location, self.key_location) if each is not None]

    def identity(self) -> TlsIdentity:
        """Return the certificate and the key as PEM."""
        if self.location is not None:
            return self._of_store(self.location)
        if self.chain_location is not None and self.key_location is not None:
            chain = pem_file("ssl.certificate.location", self.chain_location)
            return self._of_pem("ssl.certificate.location", chain, pem_file("ssl.key.location", self.key_location))
        assert self.chain is not None
        assert self.key is not None
        return self._of_pem("ssl.keystore.certificate.chain", self.chain, self.key.value)

    def _of_store(self, location: str) -> TlsIdentity:
        where = f"{self.name}.location"
        data = read_file(where, location)
        if format_of(where, location, data, self.kind) == "PEM":
            text = as_text(f"{where} = {location}", data)
            return self._of_pem(f"{where} = {location}", text, text)
        store = read_pkcs12(f"{where} = {location}", f"{self.name}.password", data, self.store_password)
        if store.cert is None or store.key is None:
            raise ConfigError(f"{where} = {location}: there is no key with its certificate in it")
        chain = [pem_of(store.cert.certificate), *(pem_of(each.certificate) for each in store.additional_certs)]
        return TlsIdentity("".join(chain), Password(key_pem(store.key)), None)

    def _of_pem(self, where: str, chain: str, key: str) -> TlsIdentity:
        found, keys = CERTIFICATE.findall(chain), KEY.search(key)
        if not found:
            raise ConfigError(f"{where}: there is no certificate in it; it must have -----BEGIN CERTIFICATE-----")
        if keys is None:
            raise ConfigError(f"{where}: there is no private key with the certificate: add it, or set ssl.key.location")
        return TlsIdentity("\n".join(found) + "\n", Password(keys[0] + "\n"), self.key_password)


def read_file(setting: str, location: str) -> bytes:
    """Return the content of a file; raise ConfigError if it is unreadable or too large."""
    try:
        if os.path.getsize(location) > MOST_BYTES:
            raise ConfigError(f"{setting} = {location}: it is too large for certificates")
        return Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} = {location}: it cannot be read: {error.strerror or error}") from None


def pem_file(setting: str, location: str) -> str:
    """Return the text of a file that must be PEM."""
    data = read_file(setting, location)
    if format_of(setting, location, data, "PEM") != "PEM":
        raise ConfigError(f"{setting} = {location}: must be PEM")
    return as_text(f"{setting} = {location}", data)


def format_of(setting: str, location: str, data: bytes, kind: str | None) -> str:
    """Return PEM or PKCS12, detected from the content; raise ConfigError if `kind` contradicts it."""
    if data.startswith(JKS) or (kind == "JKS" and b"-----BEGIN" not in data and data[:1] != b"\x30"):
        raise ConfigError(
            f"{setting} = {location}: a JKS store, which only Java can read; convert it with {conversion_command(location)}"
        )
    found = "PKCS12" if data[:1] == b"\x30" else "PEM"
    if kind not in (None, "JKS", found):  # Java reads PKCS12 also under the type JKS
        raise ConfigError(
            f"{setting} = {location}: its type is set to {kind}, but it is {found}: correct {setting.replace('location', 'type')}"
        )
    return found


def conversion_command(location: str) -> str:
    """Return the command that converts a Java store to PKCS12."""
    target = Path(location).with_suffix(".p12")
    return f"`keytool -importkeystore -srckeystore {location} -destkeystore {target} -deststoretype PKCS12`, and name {target}"


def as_text(where: str, data: bytes) -> str:
    """Return the text of a PEM file; the text between its blocks may have any encoding."""
    return data.decode("latin-1")


def read_pkcs12(where: str, password_setting: str, data: bytes, password: Password | None) -> Any:
    """Return the content of a PKCS12 store; raise ConfigError if it cannot be opened."""
    with extra("security"):
        from cryptography.hazmat.primitives.serialization import pkcs12
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.value.encode())
    except ValueError:
        problem = "is not the password of the store" if password is not None else "is missing, or the file is damaged"
        raise ConfigError(f"{where}: it cannot be opened; {password_setting} {problem}") from None


def pem_of(certificate: Any) -> str:
    data: bytes = certificate.public_bytes(import_serialization().Encoding.PEM)
    return data.decode()


def key_pem(key: Any) -> str:
    """Return a key as unencrypted PEM, for OpenSSL; it is not stored."""
    s = import_serialization()
    data: bytes = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    return data.decode()


def import_serialization() -> Any:
    from cryptography.hazmat.primitives import serialization

    return serialization


def explain_mismatch(error: Exception, identity: TlsIdentity) -> str:
    """Explain why OpenSSL rejected a certificate and its key."""
    reason = getattr(error, "reason", None) or ""
    if "KEY_VALUES_MISMATCH" in reason:
        return "the private key does not match the certificate: set a matching pair"
    if "ENCRYPTED" in identity.key.value:
        if identity.password is None:
            return "the private key is encrypted: give its password with ssl.key.password"
        return "the private key cannot be decrypted: ssl.key.password is wrong"
    return f"certificate or private key cannot be read ({reason.replace('_', ' ').lower() or 'not valid PEM'})"


@contextmanager
def write_temporary_files(*texts: str) -> Iterator[list[str]]:
    """Yield file names for texts that OpenSSL must read from files.

    The files are in memory if possible, else they are private temporary files.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptors = []
        try:
            for text in texts:
                descriptors.append(os.memfd_create("pem", os.MFD_CLOEXEC))
                with open(descriptors[-1], "wb", closefd=False) as file:
                    file.write(text.encode("latin-1"))
            yield [f"/proc/self/fd/{each}" for each in descriptors]
        finally:
            for each in descriptors:
                os.close(each)
        return
    with TemporaryDirectory(prefix="ottla-") as folder:
        names = []
        for number, text in enumerate(texts):
            place = Path(folder, f"{number}.pem")
            place.touch(mode=0o600)
            place.write_bytes(text.encode("latin-1"))
            names.append(str(place))
        yield names
