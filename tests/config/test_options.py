"""The table itself: what help and documentation print."""

from __future__ import annotations

import pytest

from ottla.config import MISSING, Between, options_of, unknown
from ottla.errors import ConfigError
from tests.config.test_read_settings import Settings


def test_each_option_has_both_names_its_default_and_its_prose() -> None:
    options = {option.field: option for option in options_of(Settings)}
    linger = options["linger_ms"]
    assert (linger.name, linger.default) == ("linger.ms", 5)
    assert linger.doc == "How long a batch waits for company\nbefore it is sent."


def test_options_come_in_the_order_they_are_declared_inherited_ones_first() -> None:
    names = [option.name for option in options_of(Settings)]
    assert names[:4] == ["bootstrap.servers", "client.id", "linger.ms", "ratio"]


def test_an_inherited_option_keeps_its_prose_and_one_without_has_none() -> None:
    options = {option.field: option for option in options_of(Settings)}
    assert options["bootstrap_servers"].doc == "Where to begin."
    assert options["client_id"].doc == ""


def test_an_option_that_must_be_given_has_no_default() -> None:
    assert options_of(Settings)[0].default is MISSING


def test_an_unknown_name_is_compared_with_names_of_any_kind() -> None:
    assert unknown("topic", "flihgts", ["flights", "delays"]) == "unknown topic 'flihgts'; did you mean 'flights'?"
    assert unknown("topic", "q", ["flights"]) == "unknown topic 'q'"


@pytest.mark.parametrize(("bounds", "value"), [(Between(1_048_576), 20_000), (Between(0, 1_048_576), 2_000_000)])
def test_a_bound_is_printed_with_all_digits(bounds: Between, value: int) -> None:
    with pytest.raises(ConfigError, match=r"segment\.bytes = \d+: must be at (least|most) 1048576$"):
        bounds.check("segment.bytes", value)
