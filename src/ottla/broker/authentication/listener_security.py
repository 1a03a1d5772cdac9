"""What one listener asks of its clients, checked and ready: certificates, mechanisms, users, keys."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.authentication.distinguished_name import distinguished_name, mapped, read_rules
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.listener_settings import for_mechanism
from ottla.config import Password
from ottla.errors import ConfigError
from ottla.network.channel import Channel, MakeChannel
from ottla.protocol.sasl.jaas import options_for

if TYPE_CHECKING:  # loaded by those who need Kerberos, or TLS
    from ottla.broker.authentication.kerberos import Acceptor
    from ottla.network.key_store import KeyStore, TrustStore
    from ottla.network.tls_context import TlsContexts, TlsServerSettings

log = logging.getLogger(__name__)
MOST_LOGIN_BYTES = 32 * 1024
"""Of a frame before a login is over, whatever the settings say: no token is longer than 16 KiB, and nothing else as long."""
USER = "user_"
"""How the options of a line for PLAIN begin that are users."""


class ListenerSecurity:
    """What is asked of those who come by one listener."""

    def __init__(self, config: BrokerConfig, name: str, protocol: str) -> None:
        """ConfigError where something is missing, cannot be read or does not fit together."""
        self.name = name
        self.protocol = protocol
        self.with_tls = protocol.endswith("SSL")
        self.with_sasl = protocol.startswith("SASL")
        self.config = config.listener(name)
        self.contexts = tls_contexts(self.config, name) if self.with_tls else None
        self._rules = read_rules(self.config.ssl_principal_mapping_rules)
        self.users: Mapping[str, str] = {}
        """Passwords of PLAIN that are in a line."""
        self.acceptor: Acceptor | None = None
        """Of logins by Kerberos, where there are any."""
        self._own = config.for_listeners
        self._most = config.socket_request_max_bytes
        if self.with_sasl:
            self._read_logins()

    @property
    def has_login(self) -> bool:
        """Whether something is to be shown before the first request: a handshake of TLS, a login or both."""
        return self.with_tls or self.with_sasl

    @property
    def identifies(self) -> bool:
        """Whether nobody comes in without having shown who it is."""
        return self.with_sasl or (self.with_tls and self.config.ssl_client_auth == "required")

    @property
    def make_channel(self) -> MakeChannel:
        """A plain channel, or one for TLS."""
        if self.contexts is None:
            return Channel
        from ottla.network.tls import TlsServerChannel

        return partial(TlsServerChannel, self.contexts)

    @property
    def max_frame_bytes(self) -> int | None:
        """What a connection may send in a frame at first: before it is known who is there, nobody needs much memory."""
        if not self.with_sasl:
            return None
        return min(self.config.sasl_server_max_receive_size, self._most, MOST_LOGIN_BYTES)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """How clients may log in."""
        return tuple(self.config.sasl_enabled_mechanisms)

    def max_reauth_ms(self, mechanism: str) -> int:
        """After how long a login must be repeated; 0: never."""
        return int(for_mechanism(self.config, self._own, self.name, mechanism, "connections.max.reauth.ms"))

    def user_of(self, certificate: Any) -> str | None:
        """Who showed this certificate; None where no rule fits its name."""
        return mapped(distinguished_name(certificate), self._rules)

    def check(self, config: BrokerConfig) -> None:
        """ConfigError where the listener could not take up such settings."""
        if self.contexts is None:
            return
        try:
            self.contexts.check(tls_settings(config.listener(self.name), self.name))
        except ConfigError as error:
            raise ConfigError(f"the certificates of listener {self.name} stay as they are: {error}") from None

    def configure(self, config: BrokerConfig) -> None:
        """Take up what was changed at run time: certificates, and whom clients' are believed from."""
        if self.contexts is None:
            return
        changed = config.listener(self.name)
        try:
            self.contexts.change(tls_settings(changed, self.name))
        except ConfigError as error:
            log.warning("the certificates of listener %s stay as they were: %s", self.name, error)
        else:
            self.config = changed

    def _read_logins(self) -> None:
        if not self.mechanisms:
            raise ConfigError(f"listener {self.name} has no way to log in: name some in sasl.enabled.mechanisms")
        line = for_mechanism(self.config, self._own, self.name, "PLAIN", "sasl.jaas.config")
        if "PLAIN" in self.mechanisms and line is not None:
            options = options_for("PLAIN", line.value)
            self.users = {name.removeprefix(USER): value for name, value in options.items() if name.startswith(USER)}
        if "OAUTHBEARER" in self.mechanisms:
            check_tokens(self.config, self.name)
        if "GSSAPI" in self.mechanisms:
            self._read_kerberos()

    def _read_kerberos(self) -> None:
        from ottla.broker.authentication.kerberos import Acceptor

        setting = f"listener.name.{self.name.lower()}.gssapi.sasl.jaas.config"
        line = for_mechanism(self.config, self._own, self.name, "GSSAPI", "sasl.jaas.config")
        if line is None:
            raise ConfigError(
                f"listener {self.name} takes logins by GSSAPI: say where the broker's keys are with {setting} = "
                'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="…" principal="kafka/HOST@REALM";'
            )
        rules = self.config.sasl_kerberos_principal_to_local_rules
        self.acceptor = Acceptor(setting, options_for("GSSAPI", line.value), rules)


def check_tokens(config: ListenerConfig, listener: str) -> None:
    """ConfigError where it is not said who may sign tokens, and for whom."""
    url, file = config.sasl_oauthbearer_jwks_endpoint_url, config.sasl_oauthbearer_jwks_file
    if (url is None) == (file is None):
        raise ConfigError(
            f"listener {listener} takes tokens: say who may sign them with either sasl.oauthbearer.jwks.endpoint.url or "
            "sasl.oauthbearer.jwks.file"
        )
    if url is not None and not url.lower().startswith("https://"):
        raise ConfigError(
            f"sasl.oauthbearer.jwks.endpoint.url = {url!r}: must begin with https://; a file is named by "
            "sasl.oauthbearer.jwks.file"
        )
    if not config.sasl_oauthbearer_expected_audience:
        raise ConfigError(
            f"listener {listener} takes tokens: name for whom they must be made with "
            "sasl.oauthbearer.expected.audience, or tokens for any other service would do here"
        )


def tls_contexts(config: ListenerConfig, listener: str) -> TlsContexts:
    """The contexts of its connections; ConfigError where a file will not do."""
    from ottla.network.tls_context import TlsContexts

    return TlsContexts(tls_settings(config, listener))


def tls_settings(config: ListenerConfig, listener: str) -> TlsServerSettings:
    """What the settings say of TLS; reads no file."""
    from ottla.network.tls_context import TlsServerSettings

    return TlsServerSettings(
        own=key_store(config, listener),
        trust=trust_store(config),
        client_auth=config.ssl_client_auth,
        versions=config.ssl_enabled_protocols or ("TLSv1.2", "TLSv1.3"),
        cipher_suites=config.ssl_cipher_suites,
    )


def key_store(config: ListenerConfig, listener: str) -> KeyStore:
    """Where the broker's certificate and key are; ConfigError where they are missing or named twice."""
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
        chain=value_of(config.ssl_keystore_certificate_chain),
        key=config.ssl_keystore_key,
        kind=config.ssl_keystore_type,
        store_password=config.ssl_keystore_password,
        key_password=config.ssl_key_password,
    )


def trust_store(config: ListenerConfig) -> TrustStore | None:
    """Who may sign clients' certificates."""
    location, text = config.ssl_truststore_location, value_of(config.ssl_truststore_certificates)
    kind, password = config.ssl_truststore_type, config.ssl_truststore_password
    if location is None and text is None and kind is None and password is None:
        return None
    from ottla.network.key_store import TrustStore

    return TrustStore(location=location, certificates=text, kind=kind, password=password)


def value_of(secret: Password | None) -> str | None:
    return None if secret is None else secret.value


def warn_of(listeners: Mapping[str, tuple[ListenerSecurity, str]]) -> None:
    """Say once which listeners strangers can reach that ask nobody who it is; they come with the address of each."""
    exposed = [
        f"{name} on {host}"
        for name, (security, host) in listeners.items()
        if not security.identifies and not is_loopback(host)
    ]
    if exposed:
        log.warning(
            "whoever can reach this broker may come in without saying who it is, by %s: have such a listener speak "
            "SASL_SSL, or SSL with ssl.client.auth=required, or keep it on 127.0.0.1",
            " and ".join(exposed),
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
