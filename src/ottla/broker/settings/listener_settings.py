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
"""What may be set for one mechanism."""
CLASSES = (".callback.handler.class", ".login.class", ".engine.factory.class", ".principal.builder.class")
NO_CLASS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
"""What Kafka needs to be told to check tokens, which is done here anyway."""


class ListenerSetting(NamedTuple):
    """The name of a setting, taken apart."""

    listener: str
    mechanism: str
    """Empty where it is for all."""
    name: str


def is_for_listener(name: str) -> bool:
    """Whether a name has the prefix."""
    return name.lower().startswith(PREFIX)


def parse_name(name: str) -> ListenerSetting | None:
    """The parts of a name; None where it has not enough of them."""
    listener, dot, rest = name[len(PREFIX) :].partition(".")
    mechanism, _, inner = rest.partition(".")
    if not dot or not listener or not rest:
        return None
    if mechanism.lower() in MECHANISMS:
        return ListenerSetting(listener.lower(), mechanism.lower(), inner)
    return ListenerSetting(listener.lower(), "", rest)


def spelled(setting: ListenerSetting) -> str:
    """The same name in the one spelling it is kept by."""
    return PREFIX + ".".join(filter(None, setting))


@cache
def table() -> Mapping[str, Option]:
    """The settings that a listener can have, by their dotted names."""
    return {option.name: option for option in options_of(ListenerConfig)}


def checked(name: str, value: Any) -> tuple[str, Any]:
    """A setting of a listener as it is kept; ConfigError where it is none. None for a value that does nothing here."""
    setting = parse_name(name)
    if setting is None:
        raise ConfigError(f"{name}: must be {PREFIX}LISTENER.SETTING, such as {PREFIX}internal.ssl.client.auth")
    option = table().get(setting.name)
    if option is None:
        if setting.name.endswith(CLASSES):
            refuse_class(name, value)
            return spelled(setting), None
        raise ConfigError(f"{name}: {unknown('setting of a listener', setting.name, table())}")
    if setting.mechanism and setting.name not in OF_A_MECHANISM:
        raise ConfigError(f"{name}: {setting.name} is for a listener, not for one mechanism of it")
    return spelled(setting), convert(name, value, option.type)


def refuse_class(name: str, value: Any) -> None:
    """No class is ever loaded because a setting names it."""
    if value != NO_CLASS:
        raise ConfigError(f"{name} = {value!r}: this broker loads no classes; leave it out")


def split(settings: Any, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """The settings of single listeners, checked, and what was given beside them; what is no dict others complain of."""
    if not isinstance(settings, Mapping | None):
        return {}, settings, dict(keywords)
    given = {name: value for name, value in (settings or {}).items() if not is_for_listener(str(name))}
    others = {name: value for name, value in keywords.items() if not is_for_listener(name)}
    everything = {**(settings or {}), **keywords}
    return dict(checked(name, value) for name, value in everything.items() if is_for_listener(str(name))), given, others


def for_listener(general: ListenerConfig, own: Mapping[str, Any], listener: str) -> ListenerConfig:
    """What holds for a listener: its own settings before those of all."""
    mine = (parse_name(name) for name in own)
    chosen = {
        each.name.replace(".", "_"): own[spelled(each)]
        for each in mine
        if each is not None and each.listener == listener.lower() and not each.mechanism
    }
    base = {option.field: getattr(general, option.field) for option in options_of(ListenerConfig)}
    return ListenerConfig(**base | {name: value for name, value in chosen.items() if value is not None})


def for_mechanism(config: ListenerConfig, own: Mapping[str, Any], listener: str, mechanism: str, name: str) -> Any:
    """A setting of one mechanism of a listener: its own, else the listener's."""
    found = own.get(spelled(ListenerSetting(listener.lower(), mechanism.lower(), name)))
    return getattr(config, name.replace(".", "_")) if found is None else found


def check_listeners(own: Iterable[str], listeners: Iterable[str]) -> None:
    """ConfigError for a setting of a listener that there is not."""
    known = [each.lower() for each in listeners]
    for name in own:
        setting = parse_name(name)
        if setting is not None and setting.listener not in known:
            raise ConfigError(f"{name}: {unknown('listener', setting.listener, known)}")
