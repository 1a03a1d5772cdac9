"""Settings for single listeners: `listener.name.<listener>.[<mechanism>.]<setting>`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ottla.broker.settings.listener_config import ListenerConfig
from ottla.config import Option, convert, options_of, unknown
from ottla.errors import ConfigError

PREFIX = "listener.name."
MECHANISMS = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi")
OF_A_MECHANISM = {"sasl.jaas.config", "connections.max.reauth.ms"}
"""Settings that may be set for one mechanism."""
CLASSES = (".callback.handler.class", ".login.class", ".engine.factory.class", ".principal.builder.class")
NO_CLASS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
"""The class by which Kafka validates tokens. It is accepted and has no effect here."""


class ListenerSetting(NamedTuple):
    """The parts of a setting's name."""

    listener: str
    mechanism: str
    """Empty if it is for all mechanisms."""
    name: str


def is_for_listener(name: str) -> bool:
    """Return True if the name has the prefix."""
    return name.lower().startswith(PREFIX)


def parse_name(name: str) -> ListenerSetting | None:
    """Return the parts of a name; None if it does not have enough of them."""
    listener, dot, rest = name[len(PREFIX) :].partition(".")
    mechanism, _, inner = rest.partition(".")
    if not dot or not listener or not rest:
        return None
    if mechanism.lower() in MECHANISMS:
        return ListenerSetting(listener.lower(), mechanism.lower(), inner)
    return ListenerSetting(listener.lower(), "", rest)


def format_name(setting: ListenerSetting) -> str:
    """Return the name in its canonical form."""
    return PREFIX + ".".join(filter(None, setting))


@cache
def list_options() -> Mapping[str, Option]:
    """Return the settings that a listener can have, by dotted name."""
    return {option.name: option for option in options_of(ListenerConfig)}


def check_value(name: str, value: Any) -> tuple[str, Any]:
    """Return the name and value of a listener setting.

    Raise ConfigError if there is none. The value is None if it has no effect here.
    """
    setting = parse_name(name)
    if setting is None:
        raise ConfigError(f"{name}: must be {PREFIX}LISTENER.SETTING, such as {PREFIX}internal.ssl.client.auth")
    option = list_options().get(setting.name)
    if option is None:
        if setting.name.endswith(CLASSES):
            refuse_class(name, value)
            return format_name(setting), None
        raise ConfigError(f"{name}: {unknown('setting of a listener', setting.name, list_options())}")
    if setting.mechanism and setting.name not in OF_A_MECHANISM:
        raise ConfigError(f"{name}: {setting.name} applies to a listener, and not to one SASL mechanism")
    return format_name(setting), convert(name, value, option.type)


def refuse_class(name: str, value: Any) -> None:
    """Raise ConfigError for a class name: settings never load a class."""
    if value != NO_CLASS:
        raise ConfigError(f"{name} = {value!r}: this broker loads no classes; leave it out")


def split_settings(settings: Any, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Split off the settings of single listeners, and check them.

    Values that are not a mapping are returned unchanged, for later checks.
    """
    if not isinstance(settings, Mapping | None):
        return {}, settings, dict(keywords)
    given = {name: value for name, value in (settings or {}).items() if not is_for_listener(str(name))}
    others = {name: value for name, value in keywords.items() if not is_for_listener(name)}
    everything = {**(settings or {}), **keywords}
    return (
        dict(check_value(name, value) for name, value in everything.items() if is_for_listener(str(name))),
        given,
        others,
    )


def for_listener(general: ListenerConfig, own: Mapping[str, Any], listener: str) -> ListenerConfig:
    """Return the settings of a listener: its own before those of all listeners."""
    mine = (parse_name(name) for name in own)
    chosen = {
        each.name.replace(".", "_"): own[format_name(each)]
        for each in mine
        if each is not None and each.listener == listener.lower() and not each.mechanism
    }
    base = {option.field: getattr(general, option.field) for option in options_of(ListenerConfig)}
    return ListenerConfig(**base | {name: value for name, value in chosen.items() if value is not None})


def for_mechanism(config: ListenerConfig, own: Mapping[str, Any], listener: str, mechanism: str, name: str) -> Any:
    """Return a setting of a mechanism of a listener: its own, else the listener's."""
    found = own.get(format_name(ListenerSetting(listener.lower(), mechanism.lower(), name)))
    return getattr(config, name.replace(".", "_")) if found is None else found


def check_listeners(own: Iterable[str], listeners: Iterable[str]) -> None:
    """Raise ConfigError for a setting of an unknown listener."""
    known = [each.lower() for each in listeners]
    for name in own:
        setting = parse_name(name)
        if setting is not None and setting.listener not in known:
            raise ConfigError(f"{name}: {unknown('listener', setting.listener, known)}")
