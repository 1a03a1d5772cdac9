"""What one side trusts, shows and insists on in TLS, as OpenSSL wants it; read again when its files change."""

from __future__ import annotations

import logging
import os
import ssl
from typing import Literal

from msgspec import Struct

from ottla.errors import ConfigError
from ottla.network.key_store import Identity, KeyStore, TrustStore

LOG = logging.getLogger(__name__)
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsSettings(Struct, frozen=True, kw_only=True):
    """What a user has said of TLS."""

    trust: TrustStore | None = None
    """Whom to trust; None: those that the operating system trusts."""
    own: KeyStore | None = None
    """What to show to brokers that ask."""
    check_name: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    """By Kafka's names, or by OpenSSL's; of TLS 1.2 only, Python cannot choose among those of 1.3."""


class TlsServerSettings(Struct, frozen=True, kw_only=True):
    """What a server shows, and whom of its clients it asks for a certificate."""

    own: KeyStore
    trust: TrustStore | None = None
    """Who may sign those of clients; needed where they are asked for."""
    client_auth: Literal["none", "requested", "required"] = "none"
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()


VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsContexts:
    """The context for the next connection: the same one until a file it was made of has changed."""

    def __init__(self, settings: TlsSettings | TlsServerSettings) -> None:
        """ConfigError where something cannot be read or does not fit together."""
        self._settings = settings
        self._stamps = self._look()
        self._context = context_of(settings)

    def check(self, settings: TlsSettings | TlsServerSettings) -> None:
        """ConfigError for other settings that will not do; nothing is changed."""
        if settings != self._settings:
            context_of(settings)

    def change(self, settings: TlsSettings | TlsServerSettings) -> None:
        """Have the next connection use other settings; ConfigError where they will not do: nothing is changed then."""
        if settings != self._settings:
            context = context_of(settings)
            self._settings, self._context = settings, context
            self._stamps = self._look()

    @property
    def shows_certificate(self) -> bool:
        """Whether the client has a certificate of its own."""
        return self._settings.own is not None

    def current(self) -> ssl.SSLContext:
        """What holds now. Files that have changed and cannot be read leave what was read before, and are told once."""
        stamps = self._look()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._context = context_of(self._settings)
            except ConfigError as error:
                LOG.warning("certificates have changed and are not taken, what was read before stays in use: %s", error)
            else:
                LOG.info("certificates have changed and were read again: %s", ", ".join(self._files()))
        return self._context

    def name_to_check(self, host: str) -> str:
        """What the broker is asked by, and where that matters what its certificate must be for."""
        return host.rstrip(".") or host

    def _files(self) -> list[str]:
        stores = (self._settings.trust, self._settings.own)
        return [file for store in stores if store is not None for file in store.files()]

    def _look(self) -> list[tuple[int, ...] | None]:
        """What tells one state of the files from another; follows links, as those of mounted secrets.

        The time of its last change of any kind is of them: a file may be written first and made readable later.
        """
        found: list[tuple[int, ...] | None] = []
        for file in self._files():
            try:
                told = os.stat(file)
            except OSError:
                found.append(None)
            else:
                found.append((told.st_mtime_ns, told.st_ctime_ns, told.st_size, told.st_ino))
        return found


def context_of(settings: TlsSettings | TlsServerSettings) -> ssl.SSLContext:
    """OpenSSL's context of what a user has said; ConfigError where that cannot be."""
    if isinstance(settings, TlsServerSettings):
        return server_context(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_name
    context.verify_mode = ssl.CERT_REQUIRED
    restrict(context, settings)
    if settings.trust is None:
        context.load_default_certs()
    else:
        settings.trust.load_into(context)
    if settings.own is not None:
        identity: Identity = settings.own.identity()
        identity.load_into(context, settings.own.name)
    return context


def server_context(settings: TlsServerSettings) -> ssl.SSLContext:
    """The same for the side that listens."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(context, settings)
    settings.own.identity().load_into(context, settings.own.name)
    if settings.client_auth != "none":
        if settings.trust is None:
            raise ConfigError(
                f"ssl.client.auth = {settings.client_auth}: name those who may sign clients' certificates with "
                "ssl.truststore.location"
            )
        settings.trust.load_into(context)
        context.verify_mode = VERIFY[settings.client_auth]
    return context


def restrict(context: ssl.SSLContext, settings: TlsSettings | TlsServerSettings) -> None:
    """Versions and suites, and no renegotiation."""
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    chosen = [VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    if settings.cipher_suites:
        choose_ciphers(context, settings.cipher_suites)


def choose_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    for name in suites:
        if name.startswith("TLS_") and "_WITH_" not in name:
            raise ConfigError(
                f"ssl.cipher.suites = {name}: Python cannot choose among the suites of TLS 1.3; leave it out, or set "
                f"ssl.enabled.protocols=TLSv1.2"
            )
    try:
        context.set_ciphers(":".join(openssl_name(name) for name in suites))
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.cipher.suites = {','.join(suites)}: OpenSSL has none of these; `openssl ciphers -stdname` lists those it has"
        ) from None


def openssl_name(name: str) -> str:
    """What OpenSSL calls the suite that Java calls so: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    if "_WITH_" not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    for bits in ("128", "256"):
        cipher = cipher.replace(f"AES_{bits}_CBC", f"AES{bits}").replace(f"AES_{bits}", f"AES{bits}")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    front = "" if exchange == "RSA" else exchange + "_"
    return (front + cipher).replace("_", "-")
