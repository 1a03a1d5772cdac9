"""Certificates and keys as users have them: PEM or PKCS12, in files or as text. What Java alone can read is refused
with the command that converts it.

Only reads; errors are ConfigErrors that name the setting and never what is in it.
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
"""How Java's own stores begin."""
MOST_BYTES = 16 * 1024 * 1024


class Identity(Struct, frozen=True):
    """A certificate with those that signed it, and its key, as PEM."""

    chain: str
    key: Password
    password: Password | None

    def load_into(self, context: ssl.SSLContext, name: str) -> None:
        """ConfigError where they do not belong together or the password is wrong."""
        secret = "" if self.password is None else self.password.value
        try:
            with as_files(self.chain, self.key.value) as (chain, key):
                context.load_cert_chain(chain, key, lambda: secret)  # without one OpenSSL would ask at the terminal
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{name}: {why_not(error, self)}") from None


@dataclass(frozen=True, kw_only=True)
class TrustStore:
    """The authorities whose certificates are believed."""

    name: str = "ssl.truststore"
    location: str | None = None
    certificates: str | None = None
    kind: str | None = None
    """PEM or PKCS12; None: as the file begins."""
    password: Password | None = None

    def __post_init__(self) -> None:
        if self.location is not None and self.certificates is not None:
            raise ConfigError(f"{self.name}.location and {self.name}.certificates exclude each other; give one")
        if self.location is None and self.certificates is None:
            raise ConfigError(f"{self.name}.password and {self.name}.type need {self.name}.location")

    def files(self) -> list[str]:
        """What it is read from."""
        return [] if self.location is None else [self.location]

    def load_into(self, context: ssl.SSLContext) -> None:
        """Trust them, and nobody else."""
        where = f"{self.name}.certificates" if self.location is None else f"{self.name}.location = {self.location}"
        text = self.certificates if self.location is None else self._read(self.location)
        found = CERTIFICATE.findall(text or "")
        if not found:
            raise ConfigError(f"{where}: there is no certificate in it; it must have -----BEGIN CERTIFICATE-----")
        try:
            context.load_verify_locations(cadata="\n".join(found))
        except ssl.SSLError as error:
            raise ConfigError(f"{where}: a certificate cannot be read ({error.reason or 'not valid PEM'})") from None
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever is in the store is believed, as Java does

    def _read(self, location: str) -> str:
        data = contents(f"{self.name}.location", location)
        if format_of(f"{self.name}.location", location, data, self.kind) == "PEM":
            return as_text(f"{self.name}.location = {location}", data)
        store = read_pkcs12(f"{self.name}.location = {location}", f"{self.name}.password", data, self.password)
        found = [store.cert, *store.additional_certs]
        return "".join(pem_of(each.certificate) for each in found if each is not None)


@dataclass(frozen=True, kw_only=True)
class KeyStore:
    """What this side shows, and proves to be its own."""

    name: str = "ssl.keystore"
    location: str | None = None
    """PEM of certificates and key, or PKCS12."""
    chain_location: str | None = None
    key_location: str | None = None
    """Both as librdkafka has them, in a file each."""
    chain: str | None = None
    key: Password | None = None
    """Both as text."""
    kind: str | None = None
    store_password: Password | None = None
    key_password: Password | None = None

    def files(self) -> list[str]:
        """What it is read from."""
        return [each for each in (self.location, self.chain_location, self.key_location) if each is not None]

    def identity(self) -> Identity:
        """What is in it, as PEM."""
        if self.location is not None:
            return self._of_store(self.location)
        if self.chain_location is not None and self.key_location is not None:
            chain = pem_file("ssl.certificate.location", self.chain_location)
            return self._of_pem("ssl.certificate.location", chain, pem_file("ssl.key.location", self.key_location))
        assert self.chain is not None
        assert self.key is not None
        return self._of_pem("ssl.keystore.certificate.chain", self.chain, self.key.value)

    def _of_store(self, location: str) -> Identity:
        where = f"{self.name}.location"
        data = contents(where, location)
        if format_of(where, location, data, self.kind) == "PEM":
            text = as_text(f"{where} = {location}", data)
            return self._of_pem(f"{where} = {location}", text, text)
        store = read_pkcs12(f"{where} = {location}", f"{self.name}.password", data, self.store_password)
        if store.cert is None or store.key is None:
            raise ConfigError(f"{where} = {location}: there is no key with its certificate in it")
        chain = [pem_of(store.cert.certificate), *(pem_of(each.certificate) for each in store.additional_certs)]
        return Identity("".join(chain), Password(key_pem(store.key)), None)

    def _of_pem(self, where: str, chain: str, key: str) -> Identity:
        found, keys = CERTIFICATE.findall(chain), KEY.search(key)
        if not found:
            raise ConfigError(f"{where}: there is no certificate in it; it must have -----BEGIN CERTIFICATE-----")
        if keys is None:
            raise ConfigError(
                f"{where}: there is no private key beside the certificate; add it, or name it with ssl.key.location"
            )
        return Identity("\n".join(found) + "\n", Password(keys[0] + "\n"), self.key_password)


def contents(setting: str, location: str) -> bytes:
    """What is in a file."""
    try:
        if os.path.getsize(location) > MOST_BYTES:
            raise ConfigError(f"{setting} = {location}: it is too large for certificates")
        return Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} = {location}: it cannot be read: {error.strerror or error}") from None


def pem_file(setting: str, location: str) -> str:
    """A file that must be PEM."""
    data = contents(setting, location)
    if format_of(setting, location, data, "PEM") != "PEM":
        raise ConfigError(f"{setting} = {location}: must be PEM")
    return as_text(f"{setting} = {location}", data)


def format_of(setting: str, location: str, data: bytes, told: str | None) -> str:
    """PEM or PKCS12: what the file is, not what it is called."""
    if data.startswith(JKS) or (told == "JKS" and b"-----BEGIN" not in data and data[:1] != b"\x30"):
        raise ConfigError(
            f"{setting} = {location}: a JKS store, which only Java can read; convert it with {converting(location)}"
        )
    found = "PKCS12" if data[:1] == b"\x30" else "PEM"
    if told not in (None, "JKS", found):  # Java reads PKCS12 under the name of JKS as well
        raise ConfigError(
            f"{setting} = {location}: it is said to be {told}, and is {found}; correct {setting.replace('location', 'type')}"
        )
    return found


def converting(location: str) -> str:
    """The command that makes PKCS12 of a store of Java's."""
    target = Path(location).with_suffix(".p12")
    return f"`keytool -importkeystore -srckeystore {location} -destkeystore {target} -deststoretype PKCS12`, and name {target}"


def as_text(where: str, data: bytes) -> str:
    """PEM is text; what stands between its blocks may be anything."""
    return data.decode("latin-1")


def read_pkcs12(where: str, password_setting: str, data: bytes, password: Password | None) -> Any:
    """The store; ConfigError where it cannot be opened."""
    with extra("security"):
        from cryptography.hazmat.primitives.serialization import pkcs12
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.value.encode())
    except ValueError:
        told = "is not the password of the store" if password is not None else "is missing, or the file is damaged"
        raise ConfigError(f"{where}: it cannot be opened; {password_setting} {told}") from None


def pem_of(certificate: Any) -> str:
    data: bytes = certificate.public_bytes(serialization().Encoding.PEM)
    return data.decode()


def key_pem(key: Any) -> str:
    """A key as PEM, for OpenSSL, and no file."""
    s = serialization()
    data: bytes = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    return data.decode()


def serialization() -> Any:
    from cryptography.hazmat.primitives import serialization

    return serialization


def why_not(error: Exception, identity: Identity) -> str:
    """Why a certificate and its key are not taken."""
    reason = getattr(error, "reason", None) or ""
    if "KEY_VALUES_MISMATCH" in reason:
        return "the private key is not that of the certificate; name the two that belong together"
    if "ENCRYPTED" in identity.key.value:
        if identity.password is None:
            return "the private key is encrypted: give its password with ssl.key.password"
        return "the private key cannot be decrypted: ssl.key.password is wrong"
    return f"certificate or private key cannot be read ({reason.replace('_', ' ').lower() or 'not valid PEM'})"


@contextmanager
def as_files(*texts: str) -> Iterator[list[str]]:
    """Names under which OpenSSL can read texts that shall be on no disk; on a disk, for us alone, where it must be."""
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
