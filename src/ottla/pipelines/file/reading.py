"""Reads pipeline files, and folders of them, and checks them completely."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from ottla.client.config.setting_owners import ClientKind
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.client_settings import find_mistake
from ottla.pipelines.file.connects_names import as_pipeline, class_of
from ottla.pipelines.file.document import Document, Path, read_document
from ottla.pipelines.pipeline_context import SERVERS, PipelineContext
from ottla.pipelines.place import Mistake, PipelineFileError, Place
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.sinks import SINKS, Sink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import SOURCES, Source
from ottla.pipelines.sources.topic import TopicBase
from ottla.spark.options import REGISTRY_SETTINGS, REGISTRY_URL, registry_spelling

with extra("pipelines"):
    from pydantic import ValidationError

from ottla.pipelines.file.loops import find_loops, find_shared_folders
from ottla.pipelines.file.pipeline_file import PipelineFile, PipelineModel, PipelineSettings
from ottla.pipelines.file.sentences import mistakes_in, name_value

ENDINGS = (".yaml", ".yml")
Environment = Mapping[str, str] | None
"""The variables for secrets. None to read pipelines without running them: secrets and files that the file names need
not exist, except those that are used, which come from this process's environment.
"""
AS_WRITTEN: Environment = None


class PipelineDefinition(NamedTuple):
    """One pipeline with the context of its file."""

    name: str
    model: PipelineModel
    settings: PipelineSettings
    folder: FilePath
    """The folder of the file: paths are relative to it."""
    secrets: Secrets
    document: Document

    def place(self, *path: str | int) -> Place:
        """Return the place of a value of this pipeline."""
        return self.document.place(("pipelines", self.name, *path))


def read_pipelines(where: FilePath, environment: Environment = os.environ) -> list[PipelineDefinition]:
    """Return all pipelines of a file, or of the files of a folder; PipelineFileError with all mistakes."""
    found: list[PipelineDefinition] = []
    mistakes: list[Mistake] = []
    for file in files_of(where):
        try:
            found += read_file(file, environment, is_alone=False)
        except PipelineFileError as error:
            mistakes += error.mistakes
    mistakes += find_duplicates(found)
    mistakes += () if mistakes else find_conflicts(found, environment)
    if mistakes:
        raise PipelineFileError(mistakes)
    return found


def files_of(where: FilePath) -> list[FilePath]:
    """Return the file itself, or the pipeline files of a folder in the order of their names; ConfigError if there are none."""
    if not where.exists():
        raise ConfigError(f"{where}: no such file or folder")
    if not where.is_dir():
        return [where]
    files = sorted(file for file in where.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not files:
        raise ConfigError(f"{where}: no pipeline files in this folder; their names end with .yaml")
    return files


def find_duplicates(found: Iterable[PipelineDefinition]) -> Iterator[Mistake]:
    """Report pipelines of several files that would share a checkpoint."""
    seen: dict[tuple[FilePath, str], PipelineDefinition] = {}
    for read in found:
        other = seen.setdefault((checkpoints_of(read), read.name), read)
        if other is not read:
            sentence = f"pipeline {read.name!r} is also in {other.document.file}; give one of them another name"
            yield Mistake(read.place(), sentence)


def find_conflicts(found: Sequence[PipelineDefinition], environment: Environment) -> Iterator[Mistake]:
    """Report pipelines that are valid alone and conflict with each other."""
    if environment is not None:
        yield from find_loops(found)
        yield from find_shared_folders(found)


def checkpoints_of(read: PipelineDefinition) -> FilePath:
    """Return the folder of the checkpoints of the pipeline's file."""
    return (read.folder / read.settings.checkpoints).absolute()


def read_file(
    file: FilePath, environment: Environment = os.environ, *, is_alone: bool = True
) -> list[PipelineDefinition]:
    """Return the pipelines of a file in its order.

    If the file is one of several, conflicts between pipelines are not checked.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    return read_text(data, str(file), file.parent.absolute(), environment, is_alone=is_alone)


def read_text(
    data: bytes, name: str, folder: FilePath, environment: Environment, *, is_alone: bool = True
) -> list[PipelineDefinition]:
    """Return the pipelines of the content of a file."""
    document = read_document(data, name)
    if document.value is None:
        raise PipelineFileError([Mistake(Place(name), "the file is empty; it needs the key 'pipelines'")])
    if (connector := class_of(document.value)) is not None:
        written = as_pipeline(connector, SOURCES, SINKS)
        sentence = f"this is a connector of Kafka Connect, {connector}, not a pipeline file; write pipelines: {{NAME: {written}}}"
        raise PipelineFileError([Mistake(Place(name), sentence)])
    found = read_all(document, folder, environment)
    return check_conflicts(found, environment) if is_alone else found


def check_conflicts(found: list[PipelineDefinition], environment: Environment) -> list[PipelineDefinition]:
    """Return the pipelines; PipelineFileError if they conflict."""
    if mistakes := list(find_conflicts(found, environment)):
        raise PipelineFileError(mistakes)
    return found


def read_value(value: Any, name: str, folder: FilePath, environment: Environment) -> list[PipelineDefinition]:
    """Return the pipelines of a program's value with the keys of a file."""
    places = {path: Place(name, 0, 0) for path in paths(value, ())}
    return check_conflicts(read_all(Document(name, value, places), folder, environment), environment)


def paths(value: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of a value and of all values in it."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from paths(one, (*path, key))


def read_all(document: Document, folder: FilePath, environment: Environment) -> list[PipelineDefinition]:
    """Return the pipelines of a document; PipelineFileError with all mistakes."""
    secrets = Secrets(os.environ if environment is None else environment, folder)
    mistakes = [] if environment is None else list(find_missing_secrets(document, secrets))
    try:
        model = PipelineFile.model_validate(document.value)
    except ValidationError as error:
        mistakes += mistakes_in(document, PipelineFile, [dict(one) for one in error.errors(include_url=False)])
        raise PipelineFileError(mistakes) from None
    if mistakes:
        raise PipelineFileError(mistakes)
    reads = [
        PipelineDefinition(each, one, model.settings, folder, secrets, document)
        for each, one in model.pipelines.items()
    ]
    mistakes += check_client_settings(document, model)
    mistakes += check_dead_letter_brokers(document, model)
    mistakes += check_registered_parts(document, model)
    if environment is not None:
        mistakes += check_registry_settings(document, model.settings, secrets, folder)
        mistakes += check_checkpoint_folder(document, folder, model.settings.checkpoints)
        mistakes += (one for read in reads for one in find_misplaced(read))
    if mistakes:
        raise PipelineFileError(mistakes)
    return reads


def check_checkpoint_folder(document: Document, folder: FilePath, checkpoints: str) -> Iterator[Mistake]:
    """Report a file in place of the checkpoint folder or of one of its parents."""
    place = (folder / checkpoints).absolute()
    there = next((one for one in (place, *place.parents) if one.exists()), None)
    if there is not None and not there.is_dir():
        sentence = f"checkpoints = {checkpoints!r}: {there} is not a folder, and pipelines keep their progress in one; choose another"
        yield Mistake(document.place(("settings", "checkpoints")), sentence)


def check_client_settings(document: Document, model: PipelineFile) -> Iterator[Mistake]:
    """Report settings of clients in a place where no client reads them."""
    for path, kafka, face in settings_of_clients(model):
        for setting in kafka:
            if (sentence := find_mistake(setting, face)) is not None:
                yield Mistake(document.place((*path, "kafka", setting)), sentence)


def check_dead_letter_brokers(document: Document, model: PipelineFile) -> Iterator[Mistake]:
    """Report dead-letter topics of pipelines without configured brokers."""
    settings = model.settings
    if settings.bootstrap_servers is not None or SERVERS in settings.kafka:
        return
    for name, one in model.pipelines.items():
        if one.errors.tolerance == "all" and one.dead_letter_part is None:
            sentence = "no brokers are configured for its dead letters; set bootstrap.servers under settings, or leave errors out"
            yield Mistake(document.place(("pipelines", name, "errors")), sentence)


def check_registry_settings(
    document: Document, settings: PipelineSettings, secrets: Secrets, folder: FilePath
) -> Iterator[Mistake]:
    """Report invalid settings of the schema registry. Their certificates are read; no connection is opened."""
    from ottla.schemas.config import registry_config

    given = settings.given_registry()
    if not given:
        return
    names = {registry_spelling(name): name for name in REGISTRY_SETTINGS}
    first = next(iter(given))
    try:
        if REGISTRY_URL not in given:
            raise ConfigError(f"{first} needs {REGISTRY_URL}, for example http://localhost:8081")
        options = settings.registry_options(folder, secrets.resolve, secrets.resolve_address)
        registry_config({names[name]: text for name, text in options.items()})
    except ConfigError as error:
        sentence = name_registry_options(str(error), names)
        place = next((name for name in given if name in sentence), first)
        yield Mistake(document.place(("settings", place)), secrets.hide(sentence))


def name_registry_options(sentence: str, names: Mapping[str, str]) -> str:
    """Return an error of the registry client with the names of the file; `names` has the client's name of each."""
    for option, name in names.items():
        if "." in name:
            sentence = sentence.replace(name, option)
        else:
            sentence = option + sentence.removeprefix(name) if sentence.startswith(f"{name} = ") else sentence
    return sentence


def check_registered_parts(document: Document, model: PipelineFile) -> Iterator[Mistake]:
    """Report sources and sinks that need a schema registry, or whose keys for it exclude each other."""
    has_registry = model.settings.schema_registry_url is not None
    for path, part in topics_in(model):
        try:
            part.check_registry(has_registry)
        except ConfigError as error:
            yield Mistake(document.place(path), f"{name_value(path)}: {error}")


def settings_of_clients(model: PipelineFile) -> Iterator[tuple[Path, Mapping[str, Any], ClientKind | None]]:
    """Yield the settings of clients in the file, with their location and kind of client; those of `settings` are for all kinds."""
    yield ("settings",), model.settings.kafka, None
    for path, part in topics_in(model):
        yield path, part.kafka, "consumer" if isinstance(part, TopicBase) else "producer"


def topics_in(model: PipelineFile) -> Iterator[tuple[Path, TopicBase | TopicSinkBase]]:
    """Yield the sources and sinks that are topics, with their location."""
    for name, one in model.pipelines.items():
        inputs = ((("inputs", each), source) for each, source in one.inputs.items())
        for path, part in ((("source",), one.source), *inputs, (("sink",), one.sink)):
            if isinstance(part, TopicBase | TopicSinkBase):
                yield ("pipelines", name, *path), part


def find_misplaced(read: PipelineDefinition) -> Iterator[Mistake]:
    """Report names of files in sources and sinks that are missing on this machine or have the wrong kind."""
    secrets = read.secrets
    context = PipelineContext(read.name, read.folder, resolve=secrets.resolve, resolve_address=secrets.resolve_address)
    parts: list[tuple[tuple[str, ...], Source | Sink]] = [
        (("source",), read.model.source),
        (("sink",), read.model.sink),
    ]
    parts += [(("inputs", name), source) for name, source in read.model.inputs.items()]
    for path, part in parts:
        for key, sentence in part.find_misplaced(context):
            yield Mistake(read.place(*path, key), read.secrets.hide(sentence))


def find_missing_secrets(document: Document, secrets: Secrets) -> Iterator[Mistake]:
    """Report placeholders without a value."""
    for path, text in texts(document.value, ()):
        if path[-1] not in ("sql", "regex", "replacement"):
            try:
                secrets.resolve(text)
            except ConfigError as error:
                yield Mistake(document.place(path), str(error))


def texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text of a document with its path."""
    if isinstance(value, str) and path:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from texts(inner, (*path, number))
