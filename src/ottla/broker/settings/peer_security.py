"""How this broker comes to the listeners of others: what its settings say of controllers' and of brokers'.

As in Kafka the settings of a listener serve both sides: `listener.name.internal.ssl.keystore.location` is what this broker
shows to whoever comes by INTERNAL, and where it comes by another's INTERNAL itself. Pure but for the files of certificates.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import protocols_of
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.listener_settings import for_mechanism
from ottla.config import Password
from ottla.errors import ConfigError
from ottla.security.kerberos_login import kerberos_login
from ottla.security.security import PASSWORDS, WITH_LOGIN, WITH_TLS, password_login, tls_settings
from ottla.security.security_config import SecurityConfig

KERBEROS = "GSSAPI"
MECHANISMS = (*PASSWORDS, KERBEROS)
"""By which a broker can log in: tokens end, and nobody would fetch new ones."""
FOR_CONTROLLERS, FOR_BROKERS = "sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol"


class PeerSecurity(NamedTuple):
    """What is needed to come by a listener."""

    listener: str
    """Its name; brokers tell where theirs are by it."""
    config: SecurityConfig
    mechanism_setting: str
    """What says how to log in."""

    @property
    def jaas_setting(self) -> str:
        """What says who logs in."""
        return jaas_name(self.listener, self.config.sasl_mechanism or "")


def towards_controllers(config: BrokerConfig) -> PeerSecurity:
    """By the first of `controller.listener.names`; ConfigError where something is missing or does not fit."""
    names = config.controller_listener_names
    if not names:
        return PeerSecurity("", SecurityConfig(), FOR_CONTROLLERS)
    name = names[0].upper()
    protocol = protocols_of([name], config.listener_security_protocol_map)[name]
    return peer_security(config, name, protocol, config.sasl_mechanism_controller_protocol, FOR_CONTROLLERS)


def towards_brokers(config: BrokerConfig) -> PeerSecurity:
    """By `inter.broker.listener.name`, else by the listener that is called as `security.inter.broker.protocol`."""
    name, protocols = inter_broker_listener(config), config.protocols()
    if name not in protocols:
        setting = (
            "inter.broker.listener.name" if config.inter_broker_listener_name else "security.inter.broker.protocol"
        )
        raise ConfigError(
            f"{setting} = {name}: there is no such listener, and brokers reach each other by it; set "
            f"inter.broker.listener.name to one of {', '.join(protocols)}"
        )
    mechanism = config.sasl_mechanism_inter_broker_protocol
    enabled = config.listener(name).sasl_enabled_mechanisms
    if protocols[name] in WITH_LOGIN and mechanism in MECHANISMS and mechanism not in enabled:
        raise ConfigError(
            f"{FOR_BROKERS} = {mechanism}: other brokers could not come in by {name}, where sasl.enabled.mechanisms is "
            f"{','.join(enabled)}; add it there"
        )
    return peer_security(config, name, protocols[name], mechanism, FOR_BROKERS)


def inter_broker_listener(config: BrokerConfig) -> str:
    """The name of the listener by which brokers reach each other."""
    name, protocol = config.inter_broker_listener_name, config.security_inter_broker_protocol
    if name and protocol != "PLAINTEXT":
        raise ConfigError(
            f"inter.broker.listener.name = {name} and security.inter.broker.protocol = {protocol} exclude each other: the "
            "protocol is what listener.security.protocol.map says; leave out the second"
        )
    return (name or protocol).upper()


def peer_security(config: BrokerConfig, listener: str, protocol: str, mechanism: str, setting: str) -> PeerSecurity:
    """What the settings of a listener mean for whoever comes by it; checked."""
    own = config.listener(listener)
    logs_in = protocol in WITH_LOGIN
    if logs_in and mechanism not in MECHANISMS:
        raise ConfigError(
            f"{setting} = {mechanism}: listener {listener} speaks {protocol}, and this broker can log in there by "
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
    """ConfigError where the line does not say who logs in."""
    try:
        if security.sasl_mechanism != KERBEROS:
            password_login(security)
        elif kerberos_login(security).principal in (None, "*"):
            raise ConfigError(
                'says no principal, and this broker logs in to others; set principal="kafka/HOST@REALM" in it'
            )
    except ConfigError as error:
        raise ConfigError(f"{setting}: {str(error).removeprefix('sasl.jaas.config').strip()}") from None


def jaas_name(listener: str, mechanism: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def security_config(own: ListenerConfig, protocol: str, mechanism: str | None, line: Password | None) -> SecurityConfig:
    """The settings of a listener as those of a client that comes by it."""
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
