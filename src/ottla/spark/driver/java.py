"""Checks that there is a Java for Spark, because Spark fails without a clear error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ottla.errors import OttlaError

LEAST = 17
REMEDY = (
    "install a Java runtime (Debian: apt install openjdk-17-jre-headless) and set JAVA_HOME if it is not on the PATH"
)


class JavaError(OttlaError):
    """Spark cannot start: Java is missing or too old."""


def ensure_java(environment: Mapping[str, str] | None = None) -> int:
    """Return the major version of the Java that Spark will use; JavaError if there is none of version 17 or later."""
    java = find_java(os.environ if environment is None else environment)
    version = parse_version(version_text(java))
    if version is None:
        raise JavaError(f"{java} did not print its version, so it may not be a Java; {REMEDY}")
    if version < LEAST:
        raise JavaError(f"Spark needs Java {LEAST} or later, but {java} is Java {version}; {REMEDY}")
    return version


def find_java(environment: Mapping[str, str]) -> str:
    """Return the program that Spark's launcher starts: that of JAVA_HOME, else the first on the PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaError(f"JAVA_HOME is {home}, but there is no bin/java in it; unset it or {REMEDY}")
        return str(java)
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    if found is None:
        raise JavaError(f"Spark needs Java {LEAST} or later, and there is no java on the PATH; {REMEDY}")
    return found


def version_text(java: str) -> str:
    """Return the output of `java -version`."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} cannot be run ({error}); {REMEDY}") from None
    return done.stderr + done.stdout


def parse_version(text: str) -> int | None:
    """Return 17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_402"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None
