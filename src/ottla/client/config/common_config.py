"""The settings that every client has, under Kafka's names.

Values only; the configs of producer, consumer and admin add theirs. A setting that Kafka has and Ottla does not support yet
is rejected with a reason, not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from ottla.client.authentication.references import resolve_references
from ottla.client.config.synonyms import translate_names
from ottla.config import Between, Password, options_of, read_settings
from ottla.errors import ConfigError, NotYetError
from ottla.security.security import check_security
from ottla.security.security_config import SecurityConfig
from ottla.settings_class import settings

if TYPE_CHECKING:
    from ottla.client.config.setting_owners import ClientKind

C = TypeVar("C")
Millis = Annotated[int, Between(0)]


@settings
class CommonConfig(SecurityConfig):
    """Settings of producer, consumer and admin."""

    bootstrap_servers: tuple[str, ...]
    """Addresses to start from, `host:port`, several separated by commas. One living broker is enough: the others are
    learnt from it."""

    client_id: str = ""
    """A name for this client in the broker's logs and metrics. Empty: `producer-1`, `consumer-<group>-1` and so on."""

    request_timeout_ms: Annotated[int, Between(1)] = 30_000
    """How long a request may stay unanswered before its connection is given up and the request is tried again."""

    retry_backoff_ms: Millis = 100
    """The pause before the first retry of a failed request; each further pause is twice as long."""

    retry_backoff_max_ms: Millis = 1_000
    """The longest pause between retries."""

    reconnect_backoff_ms: Millis = 50
    """The pause before connecting again to a broker that could not be reached; each further pause is twice as long."""

    reconnect_backoff_max_ms: Millis = 1_000
    """The longest pause between attempts to connect to one broker."""

    bootstrap_refused_timeout_ms: Annotated[int, Between(-1)] = -1
    """How long each address of `bootstrap.servers` may refuse connections, before the first broker has answered, until
    calls that wait for one fail. -1: as long as the call waits anyway, since a broker may be about to start. Ottla's own."""

    bootstrap_resolve_timeout_ms: Millis = 0
    """How long the host names of `bootstrap.servers` may be unknown to the name service, before the first broker has
    answered, until calls that wait for one fail (KIP-909). 0: as long as the call waits anyway."""

    metadata_max_age_ms: Millis = 300_000
    """How old knowledge of brokers, topics and leaders may get before it is refreshed without a cause."""

    metadata_recovery_strategy: Literal["rebootstrap", "none"] = "rebootstrap"
    """The reaction if no known broker can be reached: return to `bootstrap.servers` (`rebootstrap`), or continue with the
    known brokers (`none`)."""

    metadata_cluster_check_enable: bool = True
    """Send each broker the cluster and the node that the client expects at its address (KIP-1242). Another broker there
    makes the client return to `bootstrap.servers`. Without effect for `metadata.recovery.strategy=none`, and brokers before
    Kafka 4.4."""

    metadata_recovery_rebootstrap_trigger_ms: Millis = 300_000
    """How long questions for metadata may stay without an answer before the client begins again at `bootstrap.servers`
    although there are brokers it can connect to."""

    connections_max_idle_ms: Annotated[int, Between(-1)] = 540_000
    """A connection unused for this long is closed; it is opened again when it is needed. -1: never."""

    socket_connection_setup_timeout_ms: Annotated[int, Between(1)] = 10_000
    """How long opening a connection may take; doubled after each failure in a row."""

    socket_connection_setup_timeout_max_ms: Annotated[int, Between(1)] = 30_000
    """The longest that opening a connection may take."""

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] = "use_all_dns_ips"
    """All addresses of a host name are tried, one after the other. With `resolve_canonical_bootstrap_servers_only` each
    address of `bootstrap.servers` is first looked up for its canonical name, while the client is made, and that name is
    used: one alias may refer to many brokers."""

    send_buffer_bytes: Annotated[int, Between(-1)] = -1
    """The socket's send buffer (SO_SNDBUF). -1: the operating system sizes it, as it suits the connection."""

    receive_buffer_bytes: Annotated[int, Between(-1)] = -1
    """The socket's receive buffer (SO_RCVBUF). -1: the operating system sizes it, as it suits the connection."""

    enable_metrics_push: bool = True
    """Push the values of `metrics()` to a broker that subscribes to them (KIP-714). Brokers without that feature get no such requests."""

    auto_include_jmx_reporter: bool = True
    """Taken because Kafka's clients have it, and does nothing: there is no JMX."""

    metrics_num_samples: Annotated[int, Between(1)] = 2
    """How many windows rates, averages and maxima of `metrics()` are made of."""

    metrics_sample_window_ms: Millis = 30_000
    """How long such a window is."""

    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"] = "INFO"
    """Taken because Kafka's clients have it, and does nothing: all that there is is always counted."""

    metric_reporters: Literal["", "org.apache.kafka.common.metrics.JmxReporter"] = ""
    """Taken with its defaults because Kafka's clients have it, and does nothing: no class is loaded from a setting."""


COMMON_NOT_YET: Mapping[str, str] = {
    "sasl.client.callback.handler.class": "no class is loaded from a setting; give sasl.oauth.token.provider for tokens",
    "sasl.login.class": "no class is loaded from a setting; give sasl.oauth.token.provider for tokens",
    "sasl.oauthbearer.jwt": "tokens come from a function, a file or an endpoint so far",
    "sasl.oauthbearer.assertion": "requests to the token endpoint have a client id and a secret so far",
    "ssl.engine.factory.class": "no class is loaded from a setting",
    "ssl.provider": "TLS is OpenSSL's",
    "ssl.keymanager.algorithm": "TLS is OpenSSL's",
    "ssl.trustmanager.algorithm": "TLS is OpenSSL's",
    "ssl.secure.random.implementation": "TLS is OpenSSL's",
    "security.providers": "TLS is OpenSSL's, and logins are Ottla's own",
    "interceptor.classes": "only a consumer or a producer has records",
    "client.rack": "only a consumer or a producer uses it",
}
"""Kafka's settings that Ottla does not support yet, with the reason; a name includes all that begin with it."""


def select_common_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a client that every kind of client has."""
    from ottla.client.config.typed_settings import CommonSettings

    known = CommonSettings.__optional_keys__
    return {name: value for name, value in settings.items() if name.replace(".", "_") in known}


def read_client_settings(
    cls: type[C],
    kind: ClientKind,
    not_yet: Mapping[str, str],
    settings: Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
) -> C:
    """Return an instance of `cls`. Raise NotYetError for what only Kafka has, and the errors of `read_settings`."""
    if isinstance(settings, str):
        raise ConfigError(
            f"settings = {settings!r}: must be a dict, such as {{'bootstrap.servers': 'localhost:9092'}}, or keywords; "
            f"a consumer gets its topics from subscribe([{settings!r}]), a producer and an admin in each call"
        )
    if isinstance(settings, Mapping):  # read_settings rejects anything else
        settings = {name: resolve_setting(name, value) for name, value in translate_names(settings).items()}
    keywords = {name: resolve_setting(name, value) for name, value in translate_names(keywords).items()}
    known = {option.name for option in options_of(cls)}
    given = [*(settings or {}), *keywords]
    for text in map(str, given):
        reject_not_yet(text.replace("_", "."), {**COMMON_NOT_YET, **not_yet}, known)
        if text.replace("_", ".") not in known:
            reject_unknown(text, kind)
    config = read_settings(cls, settings, **keywords)
    assert isinstance(config, CommonConfig)
    check_security(config, {str(name).replace(".", "_") for name in given})
    return config


def reject_unknown(name: str, kind: ClientKind) -> None:
    """Raise ConfigError for a setting that another client has, of Ottla or of another library, with the remedy."""
    from ottla.client.config.setting_owners import explain_unknown  # only on an error, for start-up time

    if (text := explain_unknown(name, kind)) is not None:
        raise ConfigError(text)


def shared_by_all(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that every client has, under Kafka's names: addresses and security."""
    known = {option.name for option in options_of(CommonConfig)}
    ours = {name.replace("_", "."): value for name, value in translate_names(settings).items()}
    return {name: value for name, value in ours.items() if name in known}


def resolve_setting(name: str, value: Any) -> Any:
    """Replace references to secrets in a text; return other values unchanged."""
    if isinstance(value, Password):
        return Password(resolve_references(name, value.value))
    return resolve_references(name, value) if isinstance(value, str) else value


def reject_not_yet(name: str, not_yet: Mapping[str, str], known: set[str]) -> None:
    """Raise NotYetError if `name` is a setting that only Kafka has so far."""
    if name in known:
        return
    for prefix, reason in not_yet.items():
        if name == prefix or name.startswith(prefix + "."):
            raise NotYetError(f"{name} is not supported yet: {reason}")
