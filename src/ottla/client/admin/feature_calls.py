"""Features: described, and run at other levels (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla._version import __version__
from ottla.client.admin.admin_api_driver import AdminApiDriver, any_broker, controller
from ottla.client.admin.feature import (
    UPGRADE_TYPES,
    FeatureMetadata,
    FeatureUpdate,
    FinalizedVersionRange,
    SupportedVersionRange,
)
from ottla.client.interface.arguments import checked_dict, checked_flag, checked_text, checked_whole
from ottla.config import unknown
from ottla.errors import error_for
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

EXAMPLE = "{'share.version': 1}"
LAST_LEVEL = 2**15 - 1


class FeatureCalls:
    """What an admin does with features; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_features(self, timeout: float | None) -> FeatureMetadata:
        request = ApiVersionsRequest("ottla", __version__)
        told = self._driver.ask_one(any_broker, request, "the features", timeout)
        return FeatureMetadata(
            {
                each.name: FinalizedVersionRange(each.min_version_level, each.max_version_level)
                for each in told.finalized_features
            },
            None if told.finalized_features_epoch < 0 else told.finalized_features_epoch,
            {each.name: SupportedVersionRange(each.min_version, each.max_version) for each in told.supported_features},
        )

    def update_features(
        self, updates: Mapping[str, int | FeatureUpdate], timeout: float | None, *, validate_only: bool
    ) -> None:
        given = checked_dict("updates", updates, EXAMPLE)
        if not given:
            raise ValueError(f"updates = {given!r}: name at least one feature, such as {EXAMPLE}")
        wanted = [update_of(name, level) for name, level in given.items()]
        checked_flag("validate_only", validate_only)
        request = UpdateFeaturesRequest(self._driver.timeout_ms(timeout), wanted, validate_only)
        answer = self._driver.ask_one(controller, request, "the levels of features", timeout)
        refused = [each for each in answer.results if each.error_code]
        if refused:
            changed = ", ".join(each.feature for each in answer.results if not each.error_code)
            could = "could be changed" if validate_only else "changed"
            reasons = "; ".join(each.error_message or each.feature for each in refused)
            raise error_for(refused[0].error_code, reasons + (f"; {could}: {changed}" if changed else ""))


def update_of(name: Any, level: Any) -> FeatureUpdateKey:
    """What is to become of a feature, as it travels."""
    wanted = level if isinstance(level, FeatureUpdate) else FeatureUpdate(level)
    if wanted.upgrade_type not in UPGRADE_TYPES:
        raise ValueError(unknown("upgrade_type", wanted.upgrade_type, UPGRADE_TYPES))
    number = checked_whole(f"the level of {name!r}", wanted.max_version_level, "a level, 0 for off", LAST_LEVEL)
    name = checked_text("feature", name, "share.version")
    return FeatureUpdateKey(name, number, upgrade_type=UPGRADE_TYPES[wanted.upgrade_type])
