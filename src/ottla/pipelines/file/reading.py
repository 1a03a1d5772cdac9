"""Pipeline files and folders of them, read and checked whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from ottla.client.config.setting_owners import ClientKind
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.client_settings import mistake_in
from ottla.pipelines.file.connects_names import as_pipeline, class_of
from ottla.pipelines.file.document import Document, Path, read_document
from ottla.pipelines.place import Mistake, PipelineFileError, Place
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.sinks import SINKS
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import SOURCES
from ottla.pipelines.sources.topic import TopicBase
from ottla.pipelines.surroundings import SERVERS, Surroundings

with extra("pipelines"):
    from pydantic import ValidationError

from ottla.pipelines.file.loops import folders_shared, loops_in
from ottla.pipelines.file.pipeline_file import PipelineFile, PipelineModel, Settings
from ottla.pipelines.file.sentences import mistakes_in

ENDINGS = (".yaml", ".yml")
Environment = Mapping[str, str] | None
"""Where secrets are. None for who asks after pipelines and runs none: neither secrets nor files that are named need be there, but
for those that are used, which are this process's."""
AS_WRITTEN: Environment = None


class Read(NamedTuple):
    """One pipeline, and what it needs to know of its file."""

    name: str
    model: PipelineModel
    settings: Settings
    folder: FilePath
    """Where the file is: paths are relative to it."""
    secrets: Secrets
    document: Document

    def place(self, *path: str | int) -> Place:
        """Where something of this pipeline stands."""
        return self.document.place(("pipelines", self.name, *path))


def read_pipelines(where: FilePath, environment: Environment = os.environ) -> list[Read]:
    """All pipelines of a file, or of the files of a folder; PipelineFileError with all that is wrong with them."""
    found: list[Read] = []
    mistakes: list[Mistake] = []
    for file in files_of(where):
        try:
            found += read_file(file, environment, is_alone=False)
        except PipelineFileError as error:
            mistakes += error.mistakes
    mistakes += given_twice(found)
    mistakes += () if mistakes else joined_wrongly(found, environment)
    if mistakes:
        raise PipelineFileError(mistakes)
    return found


def files_of(where: FilePath) -> list[FilePath]:
    """The file itself, or the pipeline files of a folder in the order of their names."""
    if not where.exists():
        raise ConfigError(f"{where}: there is no such file or folder")
    if not where.is_dir():
        return [where]
    files = sorted(file for file in where.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not files:
        raise ConfigError(f"{where}: there are no pipeline files in this folder; their names end with .yaml")
    return files


def given_twice(found: Iterable[Read]) -> Iterator[Mistake]:
    """Pipelines of several files that would share a checkpoint."""
    seen: dict[tuple[FilePath, str], Read] = {}
    for read in found:
        other = seen.setdefault((checkpoints_of(read), read.name), read)
        if other is not read:
            sentence = f"pipeline {read.name!r} is also in {other.document.file}; give one of them another name"
            yield Mistake(read.place(), sentence)


def joined_wrongly(found: Sequence[Read], environment: Environment) -> Iterator[Mistake]:
    """Pipelines that are well by themselves, and not together."""
    if environment is not None:
        yield from loops_in(found)
        yield from folders_shared(found)


def checkpoints_of(read: Read) -> FilePath:
    """The folder of the checkpoints of its file."""
    return (read.folder / read.settings.checkpoints).absolute()


def read_file(file: FilePath, environment: Environment = os.environ, *, is_alone: bool = True) -> list[Read]:
    """The pipelines of a file, in its order; where it is not alone, it is not checked how they go together."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    return read_text(data, str(file), file.parent.absolute(), environment, is_alone=is_alone)


def read_text(
    data: bytes, name: str, folder: FilePath, environment: Environment, *, is_alone: bool = True
) -> list[Read]:
    """The pipelines of what a file says."""
    document = read_document(data, name)
    if document.value is None:
        raise PipelineFileError([Mistake(Place(name), "the file is empty; it needs the key 'pipelines'")])
    if (connector := class_of(document.value)) is not None:
        written = as_pipeline(connector, SOURCES, SINKS)
        sentence = f"this is a connector of Kafka Connect, {connector}, and no file of pipelines; write pipelines: {{NAME: {written}}}"
        raise PipelineFileError([Mistake(Place(name), sentence)])
    found = read_all(document, folder, environment)
    return ensure_together(found, environment) if is_alone else found


def ensure_together(found: list[Read], environment: Environment) -> list[Read]:
    """The pipelines; PipelineFileError where they do not go together."""
    if mistakes := list(joined_wrongly(found, environment)):
        raise PipelineFileError(mistakes)
    return found


def read_value(value: Any, name: str, folder: FilePath, environment: Environment) -> list[Read]:
    """The pipelines of what a program says in the words of a file."""
    places = {path: Place(name, 0, 0) for path in paths(value, ())}
    return ensure_together(read_all(Document(name, value, places), folder, environment), environment)


def paths(value: Any, path: Path) -> Iterator[Path]:
    """Of a value and of all in it."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from paths(one, (*path, key))


def read_all(document: Document, folder: FilePath, environment: Environment) -> list[Read]:
    """The pipelines of a document."""
    secrets = Secrets(os.environ if environment is None else environment, folder)
    mistakes = [] if environment is None else list(secrets_missing(document, secrets))
    try:
        model = PipelineFile.model_validate(document.value)
    except ValidationError as error:
        mistakes += mistakes_in(document, PipelineFile, [dict(one) for one in error.errors(include_url=False)])
        raise PipelineFileError(mistakes) from None
    if mistakes:
        raise PipelineFileError(mistakes)
    reads = [Read(each, one, model.settings, folder, secrets, document) for each, one in model.pipelines.items()]
    mistakes += clients_mistaken(document, model)
    mistakes += letters_misplaced(document, model)
    if environment is not None:
        mistakes += checkpoints_mistaken(document, folder, model.settings.checkpoints)
        mistakes += (one for read in reads for one in misplaced(read))
    if mistakes:
        raise PipelineFileError(mistakes)
    return reads


def checkpoints_mistaken(document: Document, folder: FilePath, checkpoints: str) -> Iterator[Mistake]:
    """What is in the way of the folder of the checkpoints."""
    place = (folder / checkpoints).absolute()
    there = next((one for one in (place, *place.parents) if one.exists()), None)
    if there is not None and not there.is_dir():
        sentence = f"checkpoints = {checkpoints!r}: {there} is no folder, which pipelines keep how far they are in; name another"
        yield Mistake(document.place(("settings", "checkpoints")), sentence)


def clients_mistaken(document: Document, model: PipelineFile) -> Iterator[Mistake]:
    """Settings of clients that nobody takes where they stand."""
    for path, kafka, face in settings_of_clients(model):
        for setting in kafka:
            if (sentence := mistake_in(setting, face)) is not None:
                yield Mistake(document.place((*path, "kafka", setting)), sentence)


def letters_misplaced(document: Document, model: PipelineFile) -> Iterator[Mistake]:
    """Dead letters of pipelines for which no brokers are named."""
    settings = model.settings
    if settings.bootstrap_servers is not None or SERVERS in settings.kafka:
        return
    for name, one in model.pipelines.items():
        if one.errors.tolerance == "all" and one.letters_part is None:
            sentence = (
                "no brokers are named for its dead letters; set bootstrap.servers under settings, or leave errors out"
            )
            yield Mistake(document.place(("pipelines", name, "errors")), sentence)


def settings_of_clients(model: PipelineFile) -> Iterator[tuple[Path, Mapping[str, Any], ClientKind | None]]:
    """All that a file has, and whose they are; those of `settings` are everybody's."""
    yield ("settings",), model.settings.kafka, None
    for name, one in model.pipelines.items():
        inputs = ((("inputs", each), source) for each, source in one.inputs.items())
        for path, part in ((("source",), one.source), *inputs, (("sink",), one.sink)):
            if isinstance(part, TopicBase | TopicSinkBase):
                yield ("pipelines", name, *path), part.kafka, "consumer" if isinstance(part, TopicBase) else "producer"


def misplaced(read: Read) -> Iterator[Mistake]:
    """What sources name that is not on this machine what it must be."""
    secrets = read.secrets
    around = Surroundings(read.name, read.folder, resolve=secrets.resolve, resolve_address=secrets.resolve_address)
    inputs = ((("inputs", name), source) for name, source in read.model.inputs.items())
    for path, source in ((("source",), read.model.source), *inputs):
        for key, sentence in source.misplaced(around):
            yield Mistake(read.place(*path, key), read.secrets.hidden(sentence))


def secrets_missing(document: Document, secrets: Secrets) -> Iterator[Mistake]:
    """Placeholders that nothing is behind."""
    for path, text in texts(document.value, ()):
        if path[-1] not in ("sql", "regex", "replacement"):
            try:
                secrets.resolve(text)
            except ConfigError as error:
                yield Mistake(document.place(path), str(error))


def texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text of a document."""
    if isinstance(value, str) and path:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from texts(inner, (*path, number))
