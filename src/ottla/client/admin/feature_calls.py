"""Describe and change feature levels (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla._version import __version__
from ottla.client.admin.admin_api_driver import AdminApiDriver, lookup_any_broker, lookup_controller
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
    """Implements the feature methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_features(self, timeout: float | None) -> FeatureMetadata:
        request = ApiVersionsRequest("ottla", __version__)
        response = self._driver.send_one(lookup_any_broker, request, "the features", timeout)
        return FeatureMetadata(
            {
                each.name: FinalizedVersionRange(each.min_version_level, each.max_version_level)
                for each in response.finalized_features
            },
            None if response.finalized_features_epoch < 0 else response.finalized_features_epoch,
            {
                each.name: SupportedVersionRange(each.min_version, each.max_version)
                for each in response.supported_features
            },
        )

    def update_features(
        self, updates: Mapping[str, int | FeatureUpdate], timeout: float | None, *, validate_only: bool
    ) -> None:
        given = checked_dict("updates", updates, EXAMPLE)
        if not given:
            raise ValueError(f"updates = {given!r}: name at least one feature, such as {EXAMPLE}")
        wanted = [encode_update(name, level) for name, level in given.items()]
        checked_flag("validate_only", validate_only)
        request = UpdateFeaturesRequest(self._driver.timeout_ms(timeout), wanted, validate_only)
        response = self._driver.send_one(lookup_controller, request, "the levels of features", timeout)
        failures = [each for each in response.results if each.error_code]
        if failures:
            changed = ", ".join(each.feature for each in response.results if not each.error_code)
            could = "could be changed" if validate_only else "changed"
            reasons = "; ".join(each.error_message or each.feature for each in failures)
            raise error_for(failures[0].error_code, reasons + (f"; {could}: {changed}" if changed else ""))


def encode_update(name: Any, level: Any) -> FeatureUpdateKey:
    """Return the change of one feature in the form of the protocol."""
    wanted = level if isinstance(level, FeatureUpdate) else FeatureUpdate(level)
    if wanted.upgrade_type not in UPGRADE_TYPES:
        raise ValueError(unknown("upgrade_type", wanted.upgrade_type, UPGRADE_TYPES))
    number = checked_whole(f"the level of {name!r}", wanted.max_version_level, "a level, 0 for off", LAST_LEVEL)
    name = checked_text("feature", name, "share.version")
    return FeatureUpdateKey(name, number, upgrade_type=UPGRADE_TYPES[wanted.upgrade_type])
