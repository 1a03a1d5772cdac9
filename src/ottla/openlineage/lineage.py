"""`Lineage`: a listener of pipelines' events that emits them to OpenLineage."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.types import StructType

from ottla._version import __version__
from ottla.extras import extra
from ottla.openlineage.datasets import names_of
from ottla.pipelines.manager.build import Built
from ottla.pipelines.manager.runner import PipelineEvent, Runner

with extra("openlineage"):
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import (
        DatasetFacet,
        RunFacet,
        error_message_run,
        processing_engine_run,
        schema_dataset,
    )

log = logging.getLogger(__name__)
PRODUCER = f"https://pypi.org/project/ottla/{__version__}"
STATES: Mapping[str, RunState] = {
    "starting": RunState.START,
    "done": RunState.COMPLETE,
    "stopped": RunState.COMPLETE,
    "paused": RunState.COMPLETE,
    "failed": RunState.FAIL,
}
"""The state of a run after each event of a pipeline; other events emit nothing. A restart after a failure is a new run."""


class Lineage:
    """Emits one event for each start and end of a pipeline. A transport that fails is logged, and delays no pipeline's data."""

    def __init__(self, client: OpenLineageClient | None = None, namespace: str = "ottla") -> None:
        self._client = OpenLineageClient() if client is None else client
        self._namespace = namespace
        self._runners: dict[str, Runner] = {}
        self._runs: dict[str, str] = {}

    def watch(self, runners: Iterable[Runner]) -> None:
        """Take the datasets and columns of pipelines; called before they run."""
        self._runners |= {runner.name: runner for runner in runners}

    def __call__(self, event: PipelineEvent) -> None:
        """Emit the event of a pipeline, if it starts or ends a run."""
        state, runner = STATES.get(event.event), self._runners.get(event.pipeline)
        if state is None or runner is None:
            return
        if state is RunState.START:
            self._runs[event.pipeline] = str(uuid.uuid4())
        run = self._runs.get(event.pipeline)
        if run is None:
            return
        if state is not RunState.START:
            del self._runs[event.pipeline]
        try:
            self._client.emit(self._event(runner.built, state, run, event.facts))
        except Exception as error:  # of any transport
            log.warning("OpenLineage event failed pipeline=%s event=%s: %s", event.pipeline, state.value, error)

    def _event(self, built: Built, state: RunState, run: str, facts: Mapping[str, Any]) -> RunEvent:
        facets: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=built.frame.sparkSession.version, name="spark", openlineageAdapterVersion=__version__
            )
        }
        if state is RunState.FAIL:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                str(facts.get("reason") or "unknown"), "PYTHON"
            )
        model = built.read.model
        read = built.steps[0].schema
        sources = [(model.source, read), *((source, None) for source in model.inputs.values())]
        return RunEvent(
            eventType=state,
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(run, facets),
            job=Job(self._namespace, built.read.name),
            producer=PRODUCER,
            inputs=[
                InputDataset(*name, facets=schema_facets(schema))
                for source, schema in sources
                for name in names_of(source, built)
            ],
            outputs=[
                OutputDataset(*name, facets=schema_facets(built.frame.schema)) for name in names_of(model.sink, built)
            ],
        )


def schema_facets(schema: StructType | None) -> dict[str, DatasetFacet]:
    """Return the facet with the columns of a dataset, and the fields of structs."""
    if schema is None:
        return {}
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields_of(schema))}


def fields_of(schema: StructType) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            name=field.name,
            type="struct" if isinstance(field.dataType, StructType) else field.dataType.simpleString(),
            fields=fields_of(field.dataType) if isinstance(field.dataType, StructType) else [],
        )
        for field in schema.fields
    ]
