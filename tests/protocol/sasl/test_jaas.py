from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.protocol.sasl.jaas import options_for, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "line",
    [
        f'{PLAIN} required username="u" password="p";',
        f"{PLAIN} required username='u' password='p';",
        f"{PLAIN}   REQUIRED\n  username=u\n  password = p ;  ",
        f'{PLAIN} required\n    username="u"\n    password="p"\n;',
        f'{PLAIN} sufficient serviceName="kafka" username="u" password="p";',
    ],
)
def test_a_line_may_be_written_in_many_ways(line: str) -> None:
    options = options_for("PLAIN", line)
    assert (options["username"], options["password"]) == ("u", "p")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "must start with a login module"),
        (SECRET, "must start with a login module"),
        (f'{PLAIN} username="{SECRET}";', "must start with a login module and `required`"),
        (f'{PLAIN} required username="u" password="{SECRET}"', "must end with a semicolon"),
        (f'{PLAIN} required username="u" password="{SECRET};', "without its other half"),
        (f'{PLAIN} required username "{SECRET}";', 'must be name="value"'),
        (f"{PLAIN} required {SECRET};", 'must be name="value"'),
        (f'{PLAIN} required password="{SECRET}" password="{SECRET}";', "an option twice"),
        (f'{PLAIN} required a="b"; {PLAIN} required password="{SECRET}";', "several login modules"),
        (f'org.example.{SECRET} required a="b";', "unknown login module"),
    ],
)
def test_an_invalid_jaas_line_is_a_one_line_error_without_its_content(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        options_for("PLAIN", line)
    assert SECRET not in str(caught.value)


def test_a_line_for_another_mechanism_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"is for sasl.mechanism = PLAIN, but sasl.mechanism is SCRAM-SHA-256"):
        options_for("SCRAM-SHA-256", f'{PLAIN} required username="u" password="p";')


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_password_can_be_written(user: str, password: str) -> None:
    line = f'{PLAIN} required username="{escaped(user)}" password="{escaped(password)}";'
    assert dict(parse_jaas(line).options) == {"username": user, "password": password}


@given(st.text(alphabet="ab =;\"'\\\n", max_size=40))
def test_any_text_is_an_entry_or_one_error(text: str) -> None:
    with suppress(ConfigError):
        assert parse_jaas(text).module
