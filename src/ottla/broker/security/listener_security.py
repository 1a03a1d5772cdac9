"""The security of one listener, checked and loaded: certificates, mechanisms, users, keys."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.security.distinguished_name import distinguished_name, map_name, read_rules
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.listener_settings import for_mechanism
from ottla.config import Password
from ottla.errors import ConfigError
from ottla.network.channel import Channel, MakeChannel
from ottla.protocol.sasl.jaas import options_for

if TYPE_CHECKING:  # loaded only for Kerberos or TLS
    from ottla.broker.security.kerberos import Acceptor
    from ottla.network.key_store import KeyStore, TrustStore
    from ottla.network.tls_context import TlsContexts, TlsServerSettings

log = logging.getLogger(__name__)
MOST_LOGIN_BYTES = 32 * 1024
"""The largest frame before authentication, in bytes, whatever the settings are: tokens have at most 16 KiB, and no
other message is longer.
"""
USER = "user_"
"""The prefix of the user options in a JAAS line for PLAIN."""


class ListenerSecurity:
    """The security settings of one listener, checked and loaded."""

    def __init__(self, config: BrokerConfig, name: str, protocol: str) -> None:
        """Raise ConfigError if a setting is missing, cannot be read or contradicts another."""
        self.name = name
        self.protocol = protocol
        self.with_tls = protocol.endswith("SSL")
        self.with_sasl = protocol.startswith("SASL")
        self.config = config.listener(name)
        self.contexts = tls_contexts(self.config, name) if self.with_tls else None
        self._rules = read_rules(self.config.ssl_principal_mapping_rules)
        self.users: Mapping[str, str] = {}
        """The users and passwords of PLAIN in the JAAS line."""
        self.acceptor: Acceptor | None = None
        """Accepts Kerberos logins, if GSSAPI is enabled."""
        self._own = config.for_listeners
        self._most = config.socket_request_max_bytes
        if self.with_sasl:
            self._read_logins()

    @property
    def has_login(self) -> bool:
        """True if a TLS handshake or SASL is required before the first request."""
        return self.with_tls or self.with_sasl

    @property
    def authenticates(self) -> bool:
        """True if every client must authenticate."""
        return self.with_sasl or (self.with_tls and self.config.ssl_client_auth == "required")

    @property
    def certificate_expiry(self) -> float | None:
        """Return when the first certificate of the chain expires, in seconds since 1970; None without TLS."""
        return None if self.contexts is None else self.contexts.certificate_expiry()

    @property
    def make_channel(self) -> MakeChannel:
        """Return the constructor of channels, with or without TLS."""
        if self.contexts is None:
            return Channel
        from ottla.network.tls import TlsServerChannel

        return partial(TlsServerChannel, self.contexts)

    @property
    def max_frame_bytes(self) -> int | None:
        """Return the largest frame before authentication, in bytes; None if SASL is not required.

        It bounds the memory that unauthenticated clients use.
        """
        if not self.with_sasl:
            return None
        return min(self.config.sasl_server_max_receive_size, self._most, MOST_LOGIN_BYTES)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that the listener enables."""
        return tuple(self.config.sasl_enabled_mechanisms)

    def max_reauth_ms(self, mechanism: str) -> int:
        """Return the time after which a client must re-authenticate; 0 for never."""
        return int(for_mechanism(self.config, self._own, self.name, mechanism, "connections.max.reauth.ms"))

    def find_user(self, certificate: Any) -> str | None:
        """Return the user of a certificate, None if no rule matches its name."""
        return map_name(distinguished_name(certificate), self._rules)

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if the listener cannot apply these settings."""
        if self.contexts is None:
            return
        try:
            self.contexts.check(tls_settings(config.listener(self.name), self.name))
        except ConfigError as error:
            raise ConfigError(f"the certificates of listener {self.name} are unchanged: {error}") from None

    def configure(self, config: BrokerConfig) -> None:
        """Apply settings that changed at run time: certificates and trusted authorities."""
        if self.contexts is None:
            return
        changed = config.listener(self.name)
        try:
            self.contexts.set_settings(tls_settings(changed, self.name))
        except ConfigError as error:
            log.warning("the certificates of listener %s are unchanged: %s", self.name, error)
        else:
            self.config = changed

    def _read_logins(self) -> None:
        if not self.mechanisms:
            raise ConfigError(
                f"listener {self.name} has no SASL mechanism: name at least one in sasl.enabled.mechanisms"
            )
        line = for_mechanism(self.config, self._own, self.name, "PLAIN", "sasl.jaas.config")
        if "PLAIN" in self.mechanisms and line is not None:
            options = options_for("PLAIN", line.value)
            self.users = {name.removeprefix(USER): value for name, value in options.items() if name.startswith(USER)}
        if "OAUTHBEARER" in self.mechanisms:
            check_tokens(self.config, self.name)
        if "GSSAPI" in self.mechanisms:
            self._read_kerberos()

    def _read_kerberos(self) -> None:
        from ottla.broker.security.kerberos import Acceptor

        setting = f"listener.name.{self.name.lower()}.gssapi.sasl.jaas.config"
        line = for_mechanism(self.config, self._own, self.name, "GSSAPI", "sasl.jaas.config")
        if line is None:
            raise ConfigError(
                f"listener {self.name} has the mechanism GSSAPI: name the broker's keys with {setting} = "
                'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="…" principal="kafka/HOST@REALM";'
            )
        rules = self.config.sasl_kerberos_principal_to_local_rules
        self.acceptor = Acceptor(setting, options_for("GSSAPI", line.value), rules)


def check_tokens(config: ListenerConfig, listener: str) -> None:
    """Raise ConfigError if the keys, the audience or the issuer of tokens are not configured."""
    url, file = config.sasl_oauthbearer_jwks_endpoint_url, config.sasl_oauthbearer_jwks_file
    if (url is None) == (file is None):
        raise ConfigError(
            f"listener {listener} accepts tokens: name the keys that sign them with either sasl.oauthbearer.jwks.endpoint.url or "
            "sasl.oauthbearer.jwks.file"
        )
    if url is not None and not url.lower().startswith("https://"):
        raise ConfigError(
            f"sasl.oauthbearer.jwks.endpoint.url = {url!r}: must begin with https://; a file is named by "
            "sasl.oauthbearer.jwks.file"
        )
    if not config.sasl_oauthbearer_expected_audience and not config.sasl_oauthbearer_allow_unverified_audience:
        raise ConfigError(
            f"listener {listener} accepts tokens: name their required audience with "
            "sasl.oauthbearer.expected.audience, since tokens for any other service would be accepted otherwise"
        )
    has_issuer = config.sasl_oauthbearer_expected_issuer is not None or config.sasl_oauthbearer_allow_unverified_issuer
    if url is not None and not has_issuer:
        raise ConfigError(
            f"listener {listener} accepts tokens: name their required issuer with sasl.oauthbearer.expected.issuer, or set "
            "sasl.oauthbearer.allow.unverified.issuer=true if every issuer with a key of the endpoint may be accepted"
        )


def tls_contexts(config: ListenerConfig, listener: str) -> TlsContexts:
    """Return the TLS contexts. Raise ConfigError if a file cannot be used."""
    from ottla.network.tls_context import TlsContexts

    return TlsContexts(tls_settings(config, listener))


def tls_settings(config: ListenerConfig, listener: str) -> TlsServerSettings:
    """Return the TLS settings. No file is read."""
    from ottla.network.tls_context import TlsServerSettings

    return TlsServerSettings(
        own=key_store(config, listener),
        trust=trust_store(config),
        client_auth=config.ssl_client_auth,
        versions=config.ssl_enabled_protocols or ("TLSv1.2", "TLSv1.3"),
        cipher_suites=config.ssl_cipher_suites,
    )


def key_store(config: ListenerConfig, listener: str) -> KeyStore:
    """Return the files of the broker's certificate and key. Raise ConfigError if they are missing or given twice."""
    text = config.ssl_keystore_certificate_chain, config.ssl_keystore_key
    if config.ssl_keystore_location is not None and any(text):
        raise ConfigError("ssl.keystore.location and ssl.keystore.certificate.chain exclude each other; give one")
    if config.ssl_keystore_location is None and None in text:
        raise ConfigError(
            f"listener {listener} needs a certificate: name it with ssl.keystore.location, or give it with "
            "ssl.keystore.certificate.chain and ssl.keystore.key; `ottla certificates` makes one to try with"
        )
    from ottla.network.key_store import KeyStore

    return KeyStore(
        location=config.ssl_keystore_location,
        chain=read_secret(config.ssl_keystore_certificate_chain),
        key=config.ssl_keystore_key,
        kind=config.ssl_keystore_type,
        store_password=config.ssl_keystore_password,
        key_password=config.ssl_key_password,
    )


def trust_store(config: ListenerConfig) -> TrustStore | None:
    """Return the authorities that may sign clients' certificates; None for those of the system."""
    location, text = config.ssl_truststore_location, read_secret(config.ssl_truststore_certificates)
    kind, password = config.ssl_truststore_type, config.ssl_truststore_password
    if location is None and text is None and kind is None and password is None:
        return None
    from ottla.network.key_store import TrustStore

    return TrustStore(location=location, certificates=text, kind=kind, password=password)


def read_secret(secret: Password | None) -> str | None:
    return None if secret is None else secret.value


def warn_of_open_listeners(listeners: Mapping[str, tuple[ListenerSecurity, str]]) -> None:
    """Log which listeners accept unauthenticated clients on an address that is not a loopback one."""
    exposed = [
        f"{name} on {host}"
        for name, (security, host) in listeners.items()
        if not security.authenticates and not is_loopback(host)
    ]
    if exposed:
        log.warning(
            "listeners without authentication on addresses that other machines can reach: %s; use "
            "SASL_SSL, or SSL with ssl.client.auth=required, or listen on 127.0.0.1",
            " and ".join(exposed),
        )


def is_loopback(host: str) -> bool:
    """Return True if an address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
