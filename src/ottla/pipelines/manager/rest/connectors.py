"""`/connectors`: pipelines for tools of Kafka Connect, each with one task.

A pipeline that reads topics has the type `sink`, because its position is offsets of topics; all others are a `source`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.lifecycle import PipelineState
from ottla.pipelines.manager.offsets import ResetTarget, position_of, topic_offsets
from ottla.pipelines.manager.rest.answers import RestError, RestResponse, json_response, not_found_error
from ottla.pipelines.manager.runner import Runner
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase

if TYPE_CHECKING:
    from ottla.pipelines.manager.rest.api import RestRequest

PATIENCE = 60.0
"""Seconds that a request waits for the manager, which may be starting another pipeline."""
STATES = {
    "waiting": "UNASSIGNED",
    "starting": "UNASSIGNED",
    "running": "RUNNING",
    "paused": "PAUSED",
    "stopped": "STOPPED",
    "failed": "FAILED",
    "done": "STOPPED",
}
PASSWORD = re.compile(r"(://[^/:@\s]*):[^/@\s]+@")
SECRET = re.compile(r"password|secret|token|jaas", re.IGNORECASE)
HIDDEN = "[hidden]"


def runner_of(request: RestRequest) -> Runner:
    """Return the pipeline in the request's path."""
    name = request.names["name"]
    found = next((runner for runner in request.manager.runners if runner.name == name), None)
    if found is None:
        raise not_found_error(f"there is no pipeline {name!r}")
    return found


def run_in_manager(request: RestRequest, call: Callable[[], Any]) -> Any:
    """Return the result of a call in the manager's thread."""
    try:
        return request.manager.requests.submit(call).result(PATIENCE)
    except TimeoutError:
        raise RestError(503, "the manager is busy starting another pipeline; try again") from None
    except CancelledError:
        raise RestError(503, "the manager is ending; ask the next one") from None


def names(request: RestRequest) -> RestResponse:
    expand = request.query.get("expand", [])
    if not expand:
        return json_response([runner.name for runner in request.manager.runners])
    found: dict[str, dict[str, Any]] = {runner.name: {} for runner in request.manager.runners}
    for runner in request.manager.runners:
        if "status" in expand:
            found[runner.name]["status"] = status_of(runner, request.worker_id)
        if "info" in expand:
            found[runner.name]["info"] = info_of(runner)
    return json_response(found)


def info(request: RestRequest) -> RestResponse:
    return json_response(info_of(runner_of(request)))


def config(request: RestRequest) -> RestResponse:
    return json_response(config_of(runner_of(request)))


def status(request: RestRequest) -> RestResponse:
    return json_response(status_of(runner_of(request), request.worker_id))


def tasks(request: RestRequest) -> RestResponse:
    runner = runner_of(request)
    return json_response([{"id": {"connector": runner.name, "task": 0}, "config": config_of(runner)}])


def task_status(request: RestRequest) -> RestResponse:
    runner = runner_of(request)
    if request.names["task"] != "0":
        raise not_found_error(f"pipeline {runner.name!r} has one task, number 0")
    return json_response(task_of(runner.facts, request.worker_id))


def topics(request: RestRequest) -> RestResponse:
    runner = runner_of(request)
    return json_response({runner.name: {"topics": sorted(topics_of(runner))}})


def reset_topics(request: RestRequest) -> RestResponse:
    """Return Connect's response for disabled topic tracking: Connect lists topics used so far, and here they are those in the file."""
    name = runner_of(request).name
    raise RestError(403, f"the topics of pipeline {name!r} are those in its file: there is nothing to reset")


def pause(request: RestRequest) -> RestResponse:
    return hold_pipeline(request, PipelineState.PAUSED, 202)


def stop(request: RestRequest) -> RestResponse:
    return hold_pipeline(request, PipelineState.STOPPED, 204)


def hold_pipeline(request: RestRequest, state: PipelineState, answer: int) -> RestResponse:
    name = runner_of(request).name
    run_in_manager(request, lambda: request.manager.pause_or_stop(name, state))
    return RestResponse(answer)


def resume(request: RestRequest) -> RestResponse:
    name = runner_of(request).name
    run_in_manager(request, lambda: request.manager.resume(name))
    return RestResponse(202)


def restart(request: RestRequest) -> RestResponse:
    """Restart a pipeline; with `onlyFailed` only if it has failed."""
    runner = runner_of(request)
    wanted = request.query.get("onlyFailed", ["false"])[-1].lower() != "true" or runner.lifecycle.failures
    if wanted:
        run_in_manager(request, lambda: request.manager.restart(runner.name))
    if request.query.get("includeTasks", ["false"])[-1].lower() == "true":
        return json_response(status_of(runner, request.worker_id), 202)
    return RestResponse(204)


def offsets(request: RestRequest) -> RestResponse:
    runner = runner_of(request)
    position = position_of(runner.home.checkpoint)
    if position is None:
        return json_response({"offsets": []})
    if isinstance(runner.built.read.model.source, TopicBase):
        found = [
            {
                "partition": {"kafka_topic": tp.topic, "kafka_partition": tp.partition},
                "offset": {"kafka_offset": offset},
            }
            for tp, offset in sorted(topic_offsets(position).items())
        ]
        return json_response({"offsets": found})
    source = runner.built.read.model.source.describe()
    return json_response({"offsets": [{"partition": {"source": source}, "offset": one} for one in position.offsets]})


def reset_offsets(request: RestRequest) -> RestResponse:
    return reset_to(request, ResetTarget("earliest"))


def alter_offsets(request: RestRequest) -> RestResponse:
    """Set the offsets of the body, in Connect's format for sink connectors."""
    wanted: dict[str, dict[str, int]] = {}
    try:
        for one in json.loads(request.body)["offsets"]:
            topic, partition = one["partition"]["kafka_topic"], int(one["partition"]["kafka_partition"])
            wanted.setdefault(topic, {})[str(partition)] = int(one["offset"]["kafka_offset"])
    except (ValueError, TypeError, KeyError):
        example = {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 5}}
        raise RestError(400, f"the body must be for example {json.dumps({'offsets': [example]})}") from None
    return reset_to(request, ResetTarget("given", json.dumps(wanted)))


def reset_to(request: RestRequest, way: ResetTarget) -> RestResponse:
    name = runner_of(request).name
    discard = request.query.get("discardState", ["false"])[-1].lower() == "true"
    run_in_manager(request, lambda: request.manager.reset(name, way, discard))
    return json_response({"message": f"pipeline {name!r} starts there when it is resumed"})


def kind_of(runner: Runner) -> str:
    return "sink" if isinstance(runner.built.read.model.source, TopicBase) else "source"


def info_of(runner: Runner) -> dict[str, Any]:
    return {
        "name": runner.name,
        "config": config_of(runner),
        "tasks": [{"connector": runner.name, "task": 0}],
        "type": kind_of(runner),
    }


def status_of(runner: Runner, worker_id: str) -> dict[str, Any]:
    """Return the status of connector and task, which are the same here; a stopped pipeline has no task."""
    facts = runner.facts
    state = STATES[facts.state]
    return {
        "name": runner.name,
        "connector": {"state": state, "worker_id": worker_id},
        "tasks": [] if state == "STOPPED" else [task_of(facts, worker_id)],
        "type": kind_of(runner),
    }


def task_of(facts: Facts, worker_id: str) -> dict[str, Any]:
    failed = facts.failures > 0 and facts.state in ("waiting", "starting", "failed")
    state = STATES[facts.state]
    state = "RESTARTING" if failed and state == "UNASSIGNED" else state
    return {"id": 0, "state": state, "worker_id": worker_id} | ({"trace": facts.reason} if failed else {})


def topics_of(runner: Runner) -> Iterator[str]:
    """Yield the topics in the pipeline file."""
    model = runner.built.read.model
    if isinstance(model.source, TopicBase):
        yield from model.source.names()
    if isinstance(model.sink, TopicSinkBase) and model.sink.topic is not None:
        yield model.sink.topic


def config_of(runner: Runner) -> dict[str, str]:
    """Return the pipeline's configuration, flat as in Connect: `source.topic`, `transforms.0.type`; placeholders instead of secrets."""
    model = runner.built.read.model
    dumped = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    part, which = (model.source, "source") if kind_of(runner) == "source" else (model.sink, "sink")
    whole = {"name": runner.name, "connector.class": f"ottla.{which}.{part.type}", "tasks.max": "1"}
    return whole | dict(flatten_value("", dumped))


def flatten_value(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the values with their paths."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten_value(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, inner in enumerate(value):
            yield from flatten_value(f"{path}.{number}", inner)
    elif isinstance(value, list):
        yield path, ",".join(map(str, value))
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield path, HIDDEN if SECRET.search(path) and "${" not in text else PASSWORD.sub(rf"\1:{HIDDEN}@", text)


ROUTES: list[tuple[str, str, Callable[[Any], RestResponse]]] = [
    ("GET", "/connectors", names),
    ("GET", "/connectors/{name}", info),
    ("GET", "/connectors/{name}/config", config),
    ("GET", "/connectors/{name}/status", status),
    ("GET", "/connectors/{name}/tasks", tasks),
    ("GET", "/connectors/{name}/tasks/{task}/status", task_status),
    ("GET", "/connectors/{name}/topics", topics),
    ("PUT", "/connectors/{name}/topics/reset", reset_topics),
    ("PUT", "/connectors/{name}/pause", pause),
    ("PUT", "/connectors/{name}/resume", resume),
    ("PUT", "/connectors/{name}/stop", stop),
    ("POST", "/connectors/{name}/restart", restart),
    ("POST", "/connectors/{name}/tasks/{task}/restart", restart),
    ("GET", "/connectors/{name}/offsets", offsets),
    ("DELETE", "/connectors/{name}/offsets", reset_offsets),
    ("PATCH", "/connectors/{name}/offsets", alter_offsets),
]
