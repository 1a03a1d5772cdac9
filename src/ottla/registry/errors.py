"""The errors of the registry, with the status and the error code of Confluent's interface."""

from __future__ import annotations

from ottla.errors import OttlaError


class RegistryError(OttlaError):
    """A rejected request: an HTTP status, an error code and a message."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class InvalidSchemaError(OttlaError):
    """A schema that cannot be parsed; the text is the reason."""


class SchemaLimitError(InvalidSchemaError):
    """A schema that exceeds a limit on size, depth or references."""


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    return RegistryError(404, 40402, f"Version {version} not found.")


def schema_not_found(what: object = None) -> RegistryError:
    return RegistryError(404, 40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(404, 40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted: delete it first"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        404, 40406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        404,
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted: delete it first",
    )


def compatibility_not_configured(subject: str) -> RegistryError:
    return RegistryError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_configured(subject: str) -> RegistryError:
    return RegistryError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible_schema(messages: str) -> RegistryError:
    return RegistryError(409, 409, messages)


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(422, 42201, reason)


def invalid_version(version: object) -> RegistryError:
    return RegistryError(
        422, 42202, f"The specified version '{version}' is not a valid version id: expected 1 to 2147483647 or 'latest'"
    )


def invalid_compatibility(level: object) -> RegistryError:
    return RegistryError(
        422,
        42203,
        f"Invalid compatibility level {level!r}: expected NONE, BACKWARD, FORWARD, FULL, BACKWARD_TRANSITIVE, "
        "FORWARD_TRANSITIVE or FULL_TRANSITIVE",
    )


def invalid_mode(mode: object) -> RegistryError:
    return RegistryError(
        422, 42204, f"Invalid mode {mode!r}: expected READWRITE, READONLY, READONLY_OVERRIDE or IMPORT"
    )


def not_permitted(message: str) -> RegistryError:
    return RegistryError(422, 42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    return RegistryError(
        422, 42206, f"One or more references exist to version {version} of subject '{subject}': delete them first"
    )


def id_does_not_match(message: str) -> RegistryError:
    return RegistryError(422, 42207, message)


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(422, 42208, f"The specified subject '{subject}' is not a valid subject name")


def schema_too_large(message: str) -> RegistryError:
    return RegistryError(422, 42209, message)


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(422, 42211, f"The specified context '{context}' is not empty: delete its subjects first")


def store_failed(message: str) -> RegistryError:
    return RegistryError(500, 50001, message)


def store_timed_out(message: str) -> RegistryError:
    return RegistryError(500, 50002, message)


def forwarding_failed(message: str) -> RegistryError:
    return RegistryError(500, 50003, message)


def unknown_leader() -> RegistryError:
    return RegistryError(500, 50004, "no registry server is the leader at present: retry the request")
