"""Java: found, too old, or missing, and then one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.spark.driver.java import JavaError, ensure_java, parse_version


def java(folder: Path, version: str) -> Path:
    """A program that prints a version as Java does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return folder


def test_versions_are_read_old_style_and_new() -> None:
    assert parse_version('openjdk version "17.0.15" 2025-04-15') == 17
    assert parse_version('java version "1.8.0_402"') == 8
    assert parse_version('openjdk version "25-ea" 2025-09-16') == 25
    assert parse_version("command not found") is None


def test_java_home_has_precedence_over_the_path(tmp_path: Path) -> None:
    home, path = java(tmp_path / "home", "21.0.1"), java(tmp_path / "path", "17.0.1")
    assert ensure_java({"JAVA_HOME": str(home), "PATH": f"{path / 'bin'}:/bin"}) == 21
    assert ensure_java({"PATH": f"{path / 'bin'}:/bin"}) == 17


def test_an_old_java_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"^Spark needs Java 17 or later, but .* is Java 8; install"):
        ensure_java({"JAVA_HOME": str(java(tmp_path, "1.8.0_402"))})


def test_no_java_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"^Spark needs Java 17 or later, and there is no java on the PATH; install"):
        ensure_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"^JAVA_HOME is .*, but there is no bin/java in it; unset it or install"):
        ensure_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_cannot_run_is_a_one_line_error(tmp_path: Path) -> None:
    home = java(tmp_path, "21")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(JavaError, match="did not print its version, so it may not be a Java"):
        ensure_java({"JAVA_HOME": str(home)})
