"""Fetch and build the external dependencies of these tests in advance: `python -m interop.needs`.

Each one is fetched once. A test with a missing dependency fetches it, or reports why it cannot.
"""

from __future__ import annotations

import subprocess
import sys

from interop import franz_go, java_programs, node, oldest_java
from rivals.spark_connector import connector_jars, spark_python
from tools.class_archive import class_archive


def main() -> None:
    java_programs.compiled()
    java_programs.ensure_archive()
    node.missing()
    franz_go.missing()
    try:
        oldest_java.fetch()
        class_archive()
        connector_jars(spark_python())
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"make interop: going on, though this failed and a test will say so: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
