"""SSL contexts from the settings of one side; rebuilt when certificate files change."""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from ottla.errors import ConfigError
from ottla.network.certificate_expiry import earliest_expiry
from ottla.network.key_store import CERTIFICATE, KeyStore, TlsIdentity, TrustStore

LOG = logging.getLogger(__name__)
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsSettings(Struct, frozen=True, kw_only=True):
    """The TLS settings of a client."""

    trust: TrustStore | None = None
    """The trusted authorities; None: those of the operating system."""
    own: KeyStore | None = None
    """The certificate for brokers that require one."""
    check_name: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    """Names of Kafka or OpenSSL, for TLS 1.2 only: Python cannot select suites of TLS 1.3."""


class TlsServerSettings(Struct, frozen=True, kw_only=True):
    """The TLS settings of a server: its certificate, and the client authentication."""

    own: KeyStore
    trust: TrustStore | None = None
    """The authorities of client certificates; required with client authentication."""
    client_auth: Literal["none", "requested", "required"] = "none"
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()


VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsContexts:
    """Provides the context for the next connection; it is rebuilt when a certificate file has changed."""

    def __init__(self, settings: TlsSettings | TlsServerSettings) -> None:
        """Raise ConfigError if a file cannot be read or the settings contradict each other."""
        self._settings = settings
        self._stamps = self._file_states()
        self._context = context_of(settings)
        self._expiry: float | None = None
        """When the certificate expires; None if it was not read from the present files yet."""

    def check(self, settings: TlsSettings | TlsServerSettings) -> None:
        """Raise ConfigError if other settings are invalid; nothing is changed."""
        if settings != self._settings:
            context_of(settings)

    def set_settings(self, settings: TlsSettings | TlsServerSettings) -> None:
        """Use other settings for the next connection; if they are invalid, raise ConfigError and change nothing."""
        if settings != self._settings:
            context = context_of(settings)
            self._settings, self._context = settings, context
            self._stamps = self._file_states()
            self._expiry = None

    @property
    def has_certificate(self) -> bool:
        """True if this side has a certificate of its own."""
        return self._settings.own is not None

    def current_context(self) -> ssl.SSLContext:
        """Return the current context.

        If changed files are invalid, the previous context stays in use and a warning is logged once.
        """
        stamps = self._file_states()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._context = context_of(self._settings)
            except ConfigError as error:
                LOG.warning("reloading certificates failed, keeping the previous ones: %s", error)
            else:
                self._expiry = None
                LOG.info("reloaded certificates: %s", ", ".join(self._files()))
        return self._context

    def certificate_expiry(self) -> float | None:
        """Return when the first certificate of this side's chain expires, in seconds since 1970; None without a certificate."""
        self.current_context()
        if self._expiry is None and self._settings.own is not None:
            with suppress(ConfigError, ValueError):  # the files were changed, and the previous certificate is in use
                self._expiry = earliest_expiry(CERTIFICATE.findall(self._settings.own.identity().chain))
        return self._expiry

    def name_to_check(self, host: str) -> str:
        """Return the host name without the final dot, for SNI and the certificate check."""
        return host.rstrip(".") or host

    def _files(self) -> list[str]:
        stores = (self._settings.trust, self._settings.own)
        return [file for store in stores if store is not None for file in store.files()]

    def _file_states(self) -> list[tuple[int, ...] | None]:
        """Return the state of the files to detect changes; links are followed, as for mounted secrets.

        It includes the time of the last inode change, because a file may be written first and made readable later.
        """
        found: list[tuple[int, ...] | None] = []
        for file in self._files():
            try:
                status = os.stat(file)
            except OSError:
                found.append(None)
            else:
                found.append((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
        return found


def context_of(settings: TlsSettings | TlsServerSettings) -> ssl.SSLContext:
    """Return the SSL context of settings; raise ConfigError if they are invalid."""
    if isinstance(settings, TlsServerSettings):
        return server_context(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_name
    context.verify_mode = ssl.CERT_REQUIRED
    restrict_context(context, settings)
    if settings.trust is None:
        context.load_default_certs()
    else:
        settings.trust.load_into(context)
    if settings.own is not None:
        identity: TlsIdentity = settings.own.identity()
        identity.load_into(context, settings.own.name)
    return context


def server_context(settings: TlsServerSettings) -> ssl.SSLContext:
    """Return the SSL context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict_context(context, settings)
    settings.own.identity().load_into(context, settings.own.name)
    if settings.client_auth != "none":
        if settings.trust is None:
            raise ConfigError(
                f"ssl.client.auth = {settings.client_auth}: set the authorities of client certificates with "
                "ssl.truststore.location"
            )
        settings.trust.load_into(context)
        context.verify_mode = VERIFY[settings.client_auth]
    return context


def restrict_context(context: ssl.SSLContext, settings: TlsSettings | TlsServerSettings) -> None:
    """Restrict versions and cipher suites, and forbid renegotiation."""
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    chosen = [VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    if settings.cipher_suites:
        choose_ciphers(context, settings.cipher_suites)


def choose_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    for name in suites:
        if name.startswith("TLS_") and "_WITH_" not in name:
            raise ConfigError(
                f"ssl.cipher.suites = {name}: Python cannot choose among the suites of TLS 1.3: omit it, or set "
                f"ssl.enabled.protocols=TLSv1.2"
            )
    try:
        context.set_ciphers(":".join(openssl_name(name) for name in suites))
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.cipher.suites = {','.join(suites)}: OpenSSL supports none of these; `openssl ciphers -stdname` lists the supported ones"
        ) from None


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite: ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    if "_WITH_" not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    for bits in ("128", "256"):
        cipher = cipher.replace(f"AES_{bits}_CBC", f"AES{bits}").replace(f"AES_{bits}", f"AES{bits}")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    front = "" if exchange == "RSA" else exchange + "_"
    return (front + cipher).replace("_", "-")
