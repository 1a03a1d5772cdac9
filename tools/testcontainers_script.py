"""Print the script that testcontainers' Kafka module copies into a container, without a container engine.

Run by `tools/image.py` in an environment with `testcontainers` and nothing of Ottla.
"""

from __future__ import annotations

from typing import Any
from unittest import mock


def main() -> None:
    with mock.patch("testcontainers.core.container.DockerClient"):  # there is no engine to ask
        from testcontainers.community.kafka import KafkaContainer  # type: ignore[import-not-found]

        container: Any = KafkaContainer("ottla:7.4.0").with_kraft()
    container.configure()
    container.get_container_host_ip = lambda: "127.0.0.1"
    container.get_exposed_port = lambda port: port
    variables = "".join(f"export {name}='{value}'\n" for name, value in container.env.items())
    container.create_file = lambda content, path: print(variables + content.decode())
    container.tc_start()


if __name__ == "__main__":
    main()
