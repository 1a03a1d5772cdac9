"""Whether there is a Java that Spark can run on, found out before Spark fails without saying so."""

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
    """The major version of the Java that Spark will use; JavaError in one sentence if there is none of 17 or later."""
    java = find_java(os.environ if environment is None else environment)
    version = parse_version(version_text(java))
    if version is None:
        raise JavaError(f"{java} did not tell its version, so it may be no Java; {REMEDY}")
    if version < LEAST:
        raise JavaError(f"Spark needs Java {LEAST} or later, but {java} is Java {version}; {REMEDY}")
    return version


def find_java(environment: Mapping[str, str]) -> str:
    """The program Spark's launcher would start: that of JAVA_HOME, else the first on the PATH."""
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
    """What `java -version` prints."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} cannot be run ({error}); {REMEDY}") from None
    return done.stderr + done.stdout


def parse_version(text: str) -> int | None:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_402"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None
