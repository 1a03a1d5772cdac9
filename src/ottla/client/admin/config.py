"""The settings of an admin client, with Kafka's names. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.config.common_config import CommonConfig, Millis, read_client_settings
from ottla.client.config.synonyms import translate_names
from ottla.config import options_of
from ottla.settings_class import settings


@settings
class AdminConfig(CommonConfig):
    """Settings of an admin client."""

    default_api_timeout_ms: Millis = 60_000
    """The timeout in ms of a call without its own timeout, including retries."""


def select_admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of another client that an admin client also has: the address and the login."""
    known = {option.name for option in options_of(AdminConfig)}
    return {name: value for name, value in translate_names(settings).items() if name.replace("_", ".") in known}


NOT_YET: Mapping[str, str] = {"bootstrap.controllers": "an admin connects to brokers only; set bootstrap.servers"}


def read_admin_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> AdminConfig:
    """Return the settings of an admin client, checked."""
    return read_client_settings(AdminConfig, "admin", NOT_YET, settings, keywords)
