"""The data of console pages that Ottla's own brokers cannot produce."""

from __future__ import annotations

from ottla.client.admin import GroupListing
from ottla.console.views import groups_view


def test_groups_of_other_kinds_than_consumers_are_counted_by_kind() -> None:
    found = [
        GroupListing("shared", "share", "Stable", "Share"),
        GroupListing("b", "consumer", "Stable", "Consumer"),
        GroupListing("again", "share", "Empty", "Share"),
        GroupListing("offsets", "", "Empty", "Classic"),
        GroupListing("words", "streams", "Empty", "Streams"),
    ]
    view = groups_view(found)
    assert [each["name"] for each in view["groups"]] == ["b", "offsets"]
    assert view["others"] == {"share": 2, "streams": 1}
    assert groups_view(found[1:2])["others"] == {}
