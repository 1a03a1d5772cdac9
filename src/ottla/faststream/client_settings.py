"""The arguments of faststream's Kafka broker as settings of Ottla's clients. Pure."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka.partitioner import DefaultPartitioner
from aiokafka.producer.producer import _missing as MISSING

from ottla.client.config.typed_settings import CommonSettings, ConsumerSettings, ProducerSettings
from ottla.errors import ConfigError

DEFAULT_PORT = 9092
RENAMED = {
    "sasl_plain_username": "sasl_username",
    "sasl_plain_password": "sasl_password",
    "max_batch_size": "batch_size",
    "partitioner": "partitioner_class",
}
"""Ottla's names of aiokafka's settings, if they differ."""
CLIENT_NAMES = frozenset(CommonSettings.__optional_keys__)
CONSUMER_NAMES = CLIENT_NAMES | ConsumerSettings.__optional_keys__ - {"enable_auto_commit", "auto_commit_interval_ms"}
CLASSIC_NAMES = frozenset({"partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms"})
"""Settings that the newer group protocol does not have; faststream always gives them."""
PRODUCER_NAMES = CLIENT_NAMES | ProducerSettings.__optional_keys__


def client_settings(given: Mapping[str, Any], names: frozenset[str] = CLIENT_NAMES) -> dict[str, Any]:
    """Return those settings that a client of Ottla has. The others, such as `loop`, have no effect there."""
    found = {RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    context = found.pop("ssl_context", None)
    if "SASL" not in found.get("security_protocol", ""):
        found = {name: value for name, value in found.items() if not name.startswith("sasl_")}
    settings = {name: value for name, value in found.items() if name in names}
    if "bootstrap_servers" in settings:
        settings["bootstrap_servers"] = add_ports(settings["bootstrap_servers"])
    if context is not None and "SSL" in settings.get("security_protocol", ""):
        settings.update(trust_of_context(context))
    if hasattr(settings.get("sasl_oauth_token_provider"), "token"):
        raise ConfigError(
            f"sasl_oauth_token_provider = {settings['sasl_oauth_token_provider']!r}: expected a function that returns "
            "(token, milliseconds since 1970 when it expires)"
        )
    return settings


def consumer_settings(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a consumer; `ours`, which have Ottla's names, precede. Committing is done by the driver."""
    settings = client_settings(given, CONSUMER_NAMES)
    strategies = settings.pop("partition_assignment_strategy", ())
    if strategies:
        settings["partition_assignment_strategy"] = [getattr(each, "name", each) for each in strategies]
    if ours.get("group_protocol") == "consumer":
        settings = {name: value for name, value in settings.items() if name not in CLASSIC_NAMES}
    return {**settings, **ours, "enable_auto_commit": False}


def consumer_option(given: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return an option of a consumer of aiokafka, or its default."""
    found = given.get(name)
    return default if found is None else found


def producer_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a producer. Without `acks` it is idempotent, which is Ottla's default."""
    settings = client_settings(given, PRODUCER_NAMES)
    if settings.get("acks") is MISSING:
        del settings["acks"]
    if not settings.get("enable_idempotence"):
        settings.pop("enable_idempotence", None)
    partitioner = settings.pop("partitioner_class", None)
    if partitioner is not None and not isinstance(partitioner, DefaultPartitioner):
        settings["partitioner_class"] = adapt_partitioner(partitioner)
    if settings.get("transactional_id") is None:
        settings.pop("transaction_timeout_ms", None)
    return settings


def adapt_partitioner(partitioner: Callable[[Any, list[int], list[int]], int]) -> Callable[..., int]:
    """Return a partitioner of Ottla that calls one of aiokafka."""

    def choose(topic: str, key: Any, value: Any, count: int) -> int:
        return partitioner(key, list(range(count)), list(range(count)))

    return choose


def add_ports(servers: str | Iterable[str]) -> list[str]:
    """Return the addresses, each with a port. An IPv6 address has brackets."""
    listed = [each.strip() for each in (servers.split(",") if isinstance(servers, str) else servers)]
    return [each if ":" in each.rpartition("]")[2] else f"{each}:{DEFAULT_PORT}" for each in listed]


def trust_of_context(context: ssl.SSLContext) -> dict[str, Any]:
    """Return the settings for the authorities that a context trusts. Keys and certificates cannot be read from it."""
    if context.verify_mode == ssl.CERT_NONE:
        raise ConfigError("ssl_context accepts any certificate: load the certificate of the authority into it")
    certificates = [ssl.DER_cert_to_PEM_cert(each) for each in context.get_ca_certs(binary_form=True)]
    settings: dict[str, Any] = {}
    if certificates:
        settings["ssl_truststore_certificates"] = "".join(certificates)
    if not context.check_hostname:
        settings["ssl_endpoint_identification_algorithm"] = ""
    return settings
