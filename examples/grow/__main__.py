"""`python -m examples.grow`: moves a topic from Apache Kafka to a broker of ours and back under load, and draws the
load.

It requires Java, and for the first run Maven, which downloads Apache Kafka's jars.
"""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.grow.story import run


def main() -> int:
    """Run the story and print the results. Returns 0 if every record is there once."""
    logging.getLogger("ottla").setLevel(logging.ERROR)
    with TemporaryDirectory(prefix="ottla-grow-") as folder:
        told = run(Path(folder))
    print(f"\nwho leads (K: Apache Kafka, O: ours), and what was acknowledged\n\n{told.timeline.drawing()}")
    print(f"\n{told.written:,} records written, {told.failed} refused: {told.missing} missing, {told.twice} twice")
    return 1 if told.missing or told.twice or told.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
