"""`/connectors`: pipelines as Kafka Connect's tools know connectors, each with one task.

A pipeline that reads topics is of the type `sink`, as its position are offsets of topics; any other is a `source`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.life import State
from ottla.pipelines.manager.offsets import Way, position_of, topic_offsets
from ottla.pipelines.manager.rest.answers import Answer, RestError, in_json, not_found
from ottla.pipelines.manager.runner import Runner
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase

if TYPE_CHECKING:
    from ottla.pipelines.manager.rest.api import Asked

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


def runner_of(asked: Asked) -> Runner:
    """The pipeline that the path names."""
    name = asked.names["name"]
    found = next((runner for runner in asked.manager.runners if runner.name == name), None)
    if found is None:
        raise not_found(f"there is no pipeline {name!r}")
    return found


def done(asked: Asked, call: Callable[[], Any]) -> Any:
    """What the manager's thread makes of a call."""
    try:
        return asked.manager.requests.ask(call).result(PATIENCE)
    except TimeoutError:
        raise RestError(503, "the manager is busy starting another pipeline; ask again") from None
    except CancelledError:
        raise RestError(503, "the manager is ending; ask the next one") from None


def names(asked: Asked) -> Answer:
    expand = asked.query.get("expand", [])
    if not expand:
        return in_json([runner.name for runner in asked.manager.runners])
    found: dict[str, dict[str, Any]] = {runner.name: {} for runner in asked.manager.runners}
    for runner in asked.manager.runners:
        if "status" in expand:
            found[runner.name]["status"] = status_of(runner, asked.worker_id)
        if "info" in expand:
            found[runner.name]["info"] = info_of(runner)
    return in_json(found)


def info(asked: Asked) -> Answer:
    return in_json(info_of(runner_of(asked)))


def config(asked: Asked) -> Answer:
    return in_json(config_of(runner_of(asked)))


def status(asked: Asked) -> Answer:
    return in_json(status_of(runner_of(asked), asked.worker_id))


def tasks(asked: Asked) -> Answer:
    runner = runner_of(asked)
    return in_json([{"id": {"connector": runner.name, "task": 0}, "config": config_of(runner)}])


def task_status(asked: Asked) -> Answer:
    runner = runner_of(asked)
    if asked.names["task"] != "0":
        raise not_found(f"pipeline {runner.name!r} has one task, number 0")
    return in_json(task_of(runner.facts, asked.worker_id))


def topics(asked: Asked) -> Answer:
    runner = runner_of(asked)
    return in_json({runner.name: {"topics": sorted(topics_of(runner))}})


def reset_topics(asked: Asked) -> Answer:
    """Connect's answer where that is switched off: it lists topics that it has seen, and here they are those that the file names."""
    name = runner_of(asked).name
    raise RestError(403, f"the topics of pipeline {name!r} are those that its file names: there is nothing to reset")


def pause(asked: Asked) -> Answer:
    return held(asked, State.PAUSED, 202)


def stop(asked: Asked) -> Answer:
    return held(asked, State.STOPPED, 204)


def held(asked: Asked, state: State, answer: int) -> Answer:
    name = runner_of(asked).name
    done(asked, lambda: asked.manager.hold(name, state))
    return Answer(answer)


def resume(asked: Asked) -> Answer:
    name = runner_of(asked).name
    done(asked, lambda: asked.manager.resume(name))
    return Answer(202)


def restart(asked: Asked) -> Answer:
    """`onlyFailed` leaves one alone that has not failed."""
    runner = runner_of(asked)
    wanted = asked.query.get("onlyFailed", ["false"])[-1].lower() != "true" or runner.life.failures
    if wanted:
        done(asked, lambda: asked.manager.restart(runner.name))
    if asked.query.get("includeTasks", ["false"])[-1].lower() == "true":
        return in_json(status_of(runner, asked.worker_id), 202)
    return Answer(204)


def offsets(asked: Asked) -> Answer:
    runner = runner_of(asked)
    position = position_of(runner.home.checkpoint)
    if position is None:
        return in_json({"offsets": []})
    if isinstance(runner.built.read.model.source, TopicBase):
        found = [
            {
                "partition": {"kafka_topic": tp.topic, "kafka_partition": tp.partition},
                "offset": {"kafka_offset": offset},
            }
            for tp, offset in sorted(topic_offsets(position).items())
        ]
        return in_json({"offsets": found})
    source = runner.built.read.model.source.describe()
    return in_json({"offsets": [{"partition": {"source": source}, "offset": one} for one in position.offsets]})


def reset_offsets(asked: Asked) -> Answer:
    return moved(asked, Way("earliest"))


def alter_offsets(asked: Asked) -> Answer:
    """To what the body says, in Connect's form for sinks."""
    wanted: dict[str, dict[str, int]] = {}
    try:
        for one in json.loads(asked.body)["offsets"]:
            topic, partition = one["partition"]["kafka_topic"], int(one["partition"]["kafka_partition"])
            wanted.setdefault(topic, {})[str(partition)] = int(one["offset"]["kafka_offset"])
    except (ValueError, TypeError, KeyError):
        example = {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 5}}
        raise RestError(400, f"the body must be such as {json.dumps({'offsets': [example]})}") from None
    return moved(asked, Way("given", json.dumps(wanted)))


def moved(asked: Asked, way: Way) -> Answer:
    name = runner_of(asked).name
    discard = asked.query.get("discardState", ["false"])[-1].lower() == "true"
    done(asked, lambda: asked.manager.reset(name, way, discard))
    return in_json({"message": f"pipeline {name!r} begins there when it is resumed"})


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
    """Connector and task are the same thing here; one that is stopped has no task."""
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
    """The topics that the file names."""
    model = runner.built.read.model
    if isinstance(model.source, TopicBase):
        yield from model.source.names()
    if isinstance(model.sink, TopicSinkBase) and model.sink.topic is not None:
        yield model.sink.topic


def config_of(runner: Runner) -> dict[str, str]:
    """What the file says, flat as Connect has it: `source.topic`, `transforms.0.type`; placeholders instead of secrets."""
    model = runner.built.read.model
    dumped = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    part, which = (model.source, "source") if kind_of(runner) == "source" else (model.sink, "sink")
    whole = {"name": runner.name, "connector.class": f"ottla.{which}.{part.type}", "tasks.max": "1"}
    return whole | dict(flat("", dumped))


def flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Values by the path to each."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, inner in enumerate(value):
            yield from flat(f"{path}.{number}", inner)
    elif isinstance(value, list):
        yield path, ",".join(map(str, value))
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield path, HIDDEN if SECRET.search(path) and "${" not in text else PASSWORD.sub(rf"\1:{HIDDEN}@", text)


ROUTES: list[tuple[str, str, Callable[[Any], Answer]]] = [
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
