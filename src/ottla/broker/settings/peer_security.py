"""The security of connections to other nodes, from the settings of controllers' and brokers' listeners.

As in Kafka the settings of a listener serve both sides: `listener.name.internal.ssl.keystore.location` is the
certificate of this broker for clients of INTERNAL, and for its own connections to INTERNAL of other brokers. Pure
except for reading certificates.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import map_protocols
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.listener_settings import for_mechanism
from ottla.config import Password
from ottla.errors import ConfigError
from ottla.security.kerberos_login import kerberos_login
from ottla.security.security import PASSWORDS, WITH_LOGIN, WITH_TLS, password_login, tls_settings
from ottla.security.security_config import SecurityConfig

KERBEROS = "GSSAPI"
MECHANISMS = (*PASSWORDS, KERBEROS)
"""The mechanisms by which a broker can authenticate to others. Tokens expire, and a broker could not obtain new ones."""
FOR_CONTROLLERS, FOR_BROKERS = "sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol"


class PeerSecurity(NamedTuple):
    """The security of connections to one listener."""

    listener: str
    """The name of the listener, the same on all brokers."""
    config: SecurityConfig
    mechanism_setting: str
    """The setting of the mechanism."""

    @property
    def jaas_setting(self) -> str:
        """Return the setting of the user."""
        return jaas_name(self.listener, self.config.sasl_mechanism or "")


def towards_controllers(config: BrokerConfig) -> PeerSecurity:
    """Return the security of connections to the first of `controller.listener.names`.

    Raise ConfigError if it is incomplete.
    """
    names = config.controller_listener_names
    if not names:
        return PeerSecurity("", SecurityConfig(), FOR_CONTROLLERS)
    name = names[0].upper()
    protocol = map_protocols([name], config.listener_security_protocol_map)[name]
    return peer_security(config, name, protocol, config.sasl_mechanism_controller_protocol, FOR_CONTROLLERS)


def towards_brokers(config: BrokerConfig) -> PeerSecurity:
    """Return the security of connections to brokers.

    The listener is that of `inter.broker.listener.name`, else the one with the name of
    `security.inter.broker.protocol`.
    """
    name, protocols = inter_broker_listener(config), config.protocols()
    if name not in protocols:
        setting = (
            "inter.broker.listener.name" if config.inter_broker_listener_name else "security.inter.broker.protocol"
        )
        raise ConfigError(
            f"{setting} = {name}: unknown listener for connections between brokers: set "
            f"inter.broker.listener.name to one of {', '.join(protocols)}"
        )
    mechanism = config.sasl_mechanism_inter_broker_protocol
    enabled = config.listener(name).sasl_enabled_mechanisms
    if protocols[name] in WITH_LOGIN and mechanism in MECHANISMS and mechanism not in enabled:
        raise ConfigError(
            f"{FOR_BROKERS} = {mechanism}: other brokers could not authenticate on listener {name}, "
            f"with sasl.enabled.mechanisms = {','.join(enabled)}; add it there"
        )
    return peer_security(config, name, protocols[name], mechanism, FOR_BROKERS)


def inter_broker_listener(config: BrokerConfig) -> str:
    """Return the name of the listener for connections between brokers."""
    name, protocol = config.inter_broker_listener_name, config.security_inter_broker_protocol
    if name and protocol != "PLAINTEXT":
        raise ConfigError(
            f"inter.broker.listener.name = {name} and security.inter.broker.protocol = {protocol} exclude each other: the "
            "protocol comes from listener.security.protocol.map; remove the second"
        )
    return (name or protocol).upper()


def peer_security(config: BrokerConfig, listener: str, protocol: str, mechanism: str, setting: str) -> PeerSecurity:
    """Return the checked security of connections to a listener."""
    own = config.listener(listener)
    logs_in = protocol in WITH_LOGIN
    if logs_in and mechanism not in MECHANISMS:
        raise ConfigError(
            f"{setting} = {mechanism}: listener {listener} has protocol {protocol}, and this broker can authenticate there by "
            f"{', '.join(MECHANISMS)}; set one of them"
        )
    line = for_mechanism(own, config.for_listeners, listener, mechanism, "sasl.jaas.config") if logs_in else None
    if logs_in and line is None:
        what = "needs a name and a password to log in with"
        if mechanism == KERBEROS:
            what = f"is Kerberos, by Kafka's default, and needs keys (or set one of {', '.join(PASSWORDS)})"
        raise ConfigError(f"{setting} = {mechanism} {what}: set {jaas_name(listener, mechanism)}")
    security = security_config(own, protocol, mechanism if logs_in else None, line)
    if protocol in WITH_TLS:
        tls_settings(security)
    if logs_in:
        check_login(security, jaas_name(listener, mechanism))
    return PeerSecurity(listener, security, setting)


def check_login(security: SecurityConfig, setting: str) -> None:
    """Raise ConfigError if the JAAS line has no user."""
    try:
        if security.sasl_mechanism != KERBEROS:
            password_login(security)
        elif kerberos_login(security).principal in (None, "*"):
            raise ConfigError(
                'has no principal, and this broker authenticates to other nodes; set principal="kafka/HOST@REALM" in it'
            )
    except ConfigError as error:
        raise ConfigError(f"{setting}: {str(error).removeprefix('sasl.jaas.config').strip()}") from None


def jaas_name(listener: str, mechanism: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def security_config(own: ListenerConfig, protocol: str, mechanism: str | None, line: Password | None) -> SecurityConfig:
    """Return the settings of a listener as those of a client that connects to it."""
    text = own.ssl_keystore_certificate_chain, own.ssl_truststore_certificates
    chain, trusted = (None if each is None else each.value for each in text)
    return SecurityConfig(
        security_protocol=protocol,  # type: ignore[arg-type]
        sasl_mechanism=mechanism,
        sasl_jaas_config=line,
        sasl_kerberos_service_name=own.sasl_kerberos_service_name,
        ssl_truststore_location=own.ssl_truststore_location,
        ssl_truststore_certificates=trusted,
        ssl_truststore_type=own.ssl_truststore_type,
        ssl_truststore_password=own.ssl_truststore_password,
        ssl_keystore_location=own.ssl_keystore_location,
        ssl_keystore_certificate_chain=chain,
        ssl_keystore_key=own.ssl_keystore_key,
        ssl_keystore_type=own.ssl_keystore_type,
        ssl_keystore_password=own.ssl_keystore_password,
        ssl_key_password=own.ssl_key_password,
        ssl_endpoint_identification_algorithm=own.ssl_endpoint_identification_algorithm,
        ssl_enabled_protocols=own.ssl_enabled_protocols,
        ssl_cipher_suites=own.ssl_cipher_suites,
    )
