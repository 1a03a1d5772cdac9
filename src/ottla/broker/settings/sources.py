"""The sources of the settings of a broker that is started by a command.

    --set key=value   >   environment OTTLA_KEY   >   --config FILE   >   default

A setting in one source hides the same setting in those after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.broker.settings.kafka_settings import ALIASES, FOR_A_CLUSTER, WITHOUT_EFFECT, has_no_effect, in_our_unit
from ottla.broker.settings.listener_settings import check_value, is_for_listener
from ottla.broker.settings.unsupported_configs import OF_BROKERS
from ottla.config import convert, options_of, unknown
from ottla.errors import ConfigError
from ottla.properties import read_properties
from ottla.settings_class import changed

PREFIX = "OTTLA_"
PROVIDERS = "config.providers"
"""Rejected, because references to its providers would be taken for values."""
NOT_SETTINGS = {
    *("OTTLA_COMPILE", "OTTLA_KAFKA_MESSAGES", "OTTLA_POLLER", "OTTLA_SPARK_PYTHON"),
    *(
        "OTTLA_BOOTSTRAP_SERVERS",
        "OTTLA_CONTEXT",
        "OTTLA_REGISTRY",
        "OTTLA_TRACE",  # which is an option of `ottla broker` besides
    ),  # settings of clients, which often share the broker's environment
}
"""Environment variables with the same prefix that are no settings."""
KUBERNETES = re.compile(r"OTTLA_(?:.*_)?(?:SERVICE_(?:HOST|PORT.*)|PORT(?:_\d+_(?:TCP|UDP).*)?)")
"""Variables that Kubernetes adds to the environment for a service named `ottla`."""
MISSPELT = 0.9
"""The similarity from which an unknown name counts as a misspelt setting of this broker, not as one of Kafka's."""

BY_HAND = {"group.initial.rebalance.delay.ms": "0"}
"""Defaults of a broker that is started by a command alone, without a file and without controllers, as in Kafka's own
server.properties for a first try. With a file or in a cluster all defaults are those of Kafka's reference."""
ROLES = {"process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers"}
"""Settings of which at least one is set on a node of a cluster. On a node that names no other they say just that, and are
not reported as without effect."""


DIRECTORIES = "log.dirs"


class GivenSetting(NamedTuple):
    """A setting and its source."""

    name: str
    value: str
    place: str
    """The place in the source, such as `server.properties, line 3`; empty for the command line."""
    alias: str = ""
    """The name that was given, if it is another one."""
    text: str = ""
    """The value for that name."""


class Gathered(NamedTuple):
    """A configuration with its warnings."""

    config: BrokerConfig
    without_effect: list[str]
    """The settings that were given and have no effect here."""
    warnings: list[str]


def read_sources(pairs: Mapping[str, str], environment: Mapping[str, str], file: str | None) -> Gathered:
    """Return the configuration from all sources. Raise ConfigError with the setting and its source."""
    without_effect: list[str] = []
    warnings: list[str] = []
    chosen: dict[str, GivenSetting] = {}
    unused: dict[str, str] = {}
    layers = (
        from_file(file) if file else (),
        from_environment(environment, warnings),
        [GivenSetting(name, value, "") for name, value in pairs.items()],
    )
    for layer in layers:
        chosen |= resolve_names(layer, without_effect, unused)
    reject_empty_directories(chosen.get(DIRECTORIES))
    try:
        settings = {name: given.value for name, given in chosen.items()}
        if file is None and not ROLES & settings.keys():
            settings = BY_HAND | settings
        aliases = {given.alias: given.text for given in chosen.values() if given.alias}
        config = changed(read_config(settings), also_given=unused | aliases)
    except ConfigError as error:
        raise add_location(error, chosen) from None
    in_cluster = config.joins_cluster or config.is_controller
    useless = [name for name in without_effect if name not in (FOR_A_CLUSTER if in_cluster else ROLES)]
    return Gathered(config, list(dict.fromkeys(useless)), warnings)


def reject_empty_directories(given: GivenSetting | None) -> None:
    """Raise ConfigError for directories without a name, as Kafka does: a variable in a template was probably empty."""
    if given is not None and not given.value.strip(" ,"):
        place = f"{given.place}: " if given.place else ""
        name = given.alias or given.name
        raise ConfigError(
            f"{place}{name} = {given.value!r}: name a directory; only a single node without this setting uses a temporary one"
        )


def from_file(path: str) -> Iterator[GivenSetting]:
    """Yield the settings in a properties file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"--config {path}: it is not text in UTF-8: {error.reason} at byte {error.start}") from None
    try:
        properties = read_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}, {error}") from None
    for line, key, value in properties:
        yield GivenSetting(key, value, f"{path}, line {line}")


def from_environment(environment: Mapping[str, str], warnings: list[str]) -> Iterator[GivenSetting]:
    """Yield the settings in the environment. Other variables with our prefix cause warnings."""
    for variable, value in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or KUBERNETES.fullmatch(variable):
            continue
        name = variable.removeprefix(PREFIX).lower().replace("_", ".")
        if name in known_names() or name in ALIASES or has_no_effect(name):
            yield GivenSetting(name, value, f"environment variable {variable}")
        else:
            spelled = [PREFIX + each.upper().replace(".", "_") for each in known_names()]
            warnings.append(f"{unknown('environment variable', variable, spelled)} (it is ignored)")


def is_known_setting(name: str) -> bool:
    """Return True if a broker accepts the setting, even one without effect."""
    return (
        name in known_names()
        or name in ALIASES
        or is_for_listener(name)
        or has_no_effect(name)
        or (name in OF_BROKERS and name != PROVIDERS)
    )


def known_names() -> list[str]:
    """Return the names of the broker's own settings."""
    return [option.name for option in options_of(BrokerConfig)]


def resolve_names(
    layer: Iterable[GivenSetting], without_effect: list[str], unused: dict[str, str]
) -> dict[str, GivenSetting]:
    """Return the settings of one source under their own names, each checked; the last of two counts, as in Java.

    Settings without effect are added to `without_effect`, and with their values to `unused`.
    """
    ranks = list(ALIASES)
    found: dict[str, tuple[int, GivenSetting]] = {}
    for given in layer:
        try:
            name, value = find_own_name(given)
        except ConfigError as error:
            raise ConfigError(f"{given.place}: {error}" if given.place else str(error)) from None
        if not name:
            without_effect.append(given.name)
            unused[given.name] = given.value
            continue
        if name in FOR_A_CLUSTER:
            without_effect.append(name)
        rank = ranks.index(given.name) if given.name in ALIASES else len(ranks)
        if name not in found or rank >= found[name][0]:
            alias = (given.name, given.value) if given.name in ALIASES else ("", "")
            found[name] = rank, GivenSetting(name, value, given.place, *alias)
    return {name: given for name, (_, given) in found.items()}


def find_own_name(given: GivenSetting) -> tuple[str, str]:
    """Return our name and value of a setting, an empty name if it has no effect. Raise ConfigError if it is invalid."""
    alias = ALIASES.get(given.name)
    if is_for_listener(given.name):
        own, checked_value = check_value(given.name, given.value)
        return ("", "") if checked_value is None else (own, given.value)
    name = alias.name if alias else given.name.replace("_", ".")
    value = in_our_unit(given.name, given.value, alias) if alias else given.value
    options = {option.name: option for option in options_of(BrokerConfig)}
    option = options.get(name)
    if option is not None:
        convert(name, value, option.type)
        return name, value
    import difflib  # for names that are no settings

    is_like_ours = bool(difflib.get_close_matches(name, options, n=1, cutoff=MISSPELT))
    is_kafkas = name in OF_BROKERS and name != PROVIDERS
    if name in WITHOUT_EFFECT or is_kafkas or (has_no_effect(name) and not is_like_ours):
        return "", ""
    raise ConfigError(unknown("setting", given.name, [*options, *ALIASES]))


def add_location(error: ConfigError, chosen: Mapping[str, GivenSetting]) -> ConfigError:
    """Return the error with the source of the setting that it starts with."""
    given = chosen.get(str(error).partition(" = ")[0].partition(":")[0])
    return ConfigError(f"{given.place}: {error}") if given is not None and given.place else error
