#!/usr/bin/env python3
"""End with status 0 if the broker of this container serves clients: the health check of the image."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

DEFAULT = "0.0.0.0:9404"
SECONDS = 4


def main() -> None:
    port = os.environ.get("OTTLA_METRICS_LISTEN", DEFAULT).rpartition(":")[2]
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=SECONDS).close()
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"health: {error}")


if __name__ == "__main__":
    main()
