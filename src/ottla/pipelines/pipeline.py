"""A pipeline written in Python: the same as one in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.pipelines.file.reading import read_value
from ottla.pipelines.manager.control import ANY_PORT, serve_control
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.preparation import prepare_in_block
from ottla.pipelines.manager.runner import PipelineEvent
from ottla.pipelines.manager.session import session_for


class Pipeline:
    """One pipeline.

        Pipeline(
            source={"type": "topic", "topic": "orders", "valueFormat": "json", "valueSchema": "id bigint, card string"},
            transforms=[{"type": "MaskField", "fields": "card"}],
            sink={"type": "topic", "topic": "masked"},
            settings={"bootstrap.servers": "127.0.0.1:9092"},
        ).run(once=True)

    Its parts have the keys that they have in a file; paths are relative to `folder`, the current one.
    """

    def __init__(
        self,
        *,
        source: Mapping[str, Any],
        sink: Mapping[str, Any],
        transforms: Sequence[Mapping[str, Any]] = (),
        name: str = "pipeline",
        settings: Mapping[str, Any] | None = None,
        folder: str | Path = ".",
        **more: Any,
    ) -> None:
        pipeline = {"source": dict(source), "transforms": [dict(one) for one in transforms], "sink": dict(sink), **more}
        value = {"settings": dict(settings or {}), "pipelines": {name: pipeline}}
        (self._read,) = read_value(value, name, Path(folder).absolute(), os.environ)

    def run(
        self,
        *,
        once: bool = False,
        on_event: Callable[[PipelineEvent], None] = lambda event: None,
        listen: str = ANY_PORT,
    ) -> bool:
        """Run until Ctrl-C, or with `once` until the rows available now are written.

        Return False if the pipeline failed.

        Each event is passed to `on_event`. The pipeline is controlled at `listen`, like one run by `ottla pipeline run`.
        """
        reads = [self._read]
        with prepare_in_block(reads) as homes:
            manager = Manager(reads, session_for(reads), homes, once=once, on_event=on_event)
            try:
                with serve_control(manager, listen):
                    return manager.run()
            except KeyboardInterrupt:
                return True
