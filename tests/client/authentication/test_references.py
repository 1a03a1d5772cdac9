from __future__ import annotations

from pathlib import Path

import pytest

from ottla.client.admin.config import read_admin_settings
from ottla.config import Password
from ottla.errors import ConfigError

SECRET = "s3cr3t"


def password_of(text: str) -> Password | None:
    given = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    return read_admin_settings({**given, "sasl.username": "u", "sasl.password": text}, {}).sasl_password


def test_a_secret_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    assert password_of("${env:KAFKA_PASSWORD}") == Password(SECRET)
    assert password_of("a-${env:KAFKA_PASSWORD}-b") == Password(f"a-{SECRET}-b")


def test_a_secret_may_be_a_line_of_a_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "secrets.properties"
    path.write_text(f"# not this\nother=x\nkafka.password = {SECRET}\n")
    assert password_of(f"${{file:{path}:kafka.password}}") == Password(SECRET)


def test_a_secret_may_be_a_file_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECRET + "\n")
    assert password_of(f"${{directory:{tmp_path}:password}}") == Password(SECRET)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NOBODY_HAS_THIS}", "environment variable NOBODY_HAS_THIS is not set; set it"),
        ("${file:/nowhere:key}", "/nowhere cannot be read: No such file"),
        ("${file:key}", "must be .*file:/path:key"),
        ("${directory:/tmp:../etc/passwd}", "must be the name of a file"),
        ("${directory:/nowhere:password}", "cannot be read"),
    ],
)
def test_an_unresolved_reference_is_an_error_that_names_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^sasl.password: .*{message}"):
        password_of(text)


def test_a_resolved_reference_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "${env:INNER}")
    monkeypatch.setenv("INNER", "no")
    assert password_of("${env:OUTER}") == Password("${env:INNER}")


def test_other_dollar_signs_are_not_replaced() -> None:
    assert password_of("pa$$${word}") == Password("pa$$${word}")
