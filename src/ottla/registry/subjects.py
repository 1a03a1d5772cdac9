"""Names of subjects and contexts. A qualified subject is `:.context:name`; in the default context it is the name alone."""

from __future__ import annotations

DEFAULT_CONTEXT = "."
ANY_CONTEXT = ":*:"
"""The prefix that means all contexts."""


def split_subject(subject: str) -> tuple[str, str]:
    """Return the context and the name of a subject."""
    if subject.startswith(":."):
        end = subject.find(":", 1)
        if end > 0:
            return subject[1:end], subject[end + 1 :]
    return DEFAULT_CONTEXT, subject


def context_of(subject: str) -> str:
    """Return the context of a subject."""
    return split_subject(subject)[0]


def qualify(context: str, name: str) -> str:
    """Return the name of a subject with its context."""
    return name if context == DEFAULT_CONTEXT else f":{context}:{name}"


def normalize_subject(subject: str) -> str:
    """Return the subject in its shortest form."""
    return qualify(*split_subject(subject))


def is_context_only(subject: str) -> bool:
    """Return True if the text names a context and no subject."""
    return subject.startswith(":.") and split_subject(subject)[1] == ""


def is_valid_subject(subject: str) -> bool:
    """Return True if the text can be the name of a subject: not empty, no control characters, no reserved name."""
    context, name = split_subject(subject)
    return bool(name) and name not in ("__GLOBAL", "__EMPTY") and not any(ord(each) < 0x20 for each in name + context)


def has_prefix(subject: str, prefix: str) -> bool:
    """Return True if a subject matches a prefix, which may select one context or, as `:*:`, all of them."""
    if prefix.startswith(ANY_CONTEXT):
        return split_subject(subject)[1].startswith(prefix[len(ANY_CONTEXT) :])
    context, name = split_subject(prefix)
    own_context, own_name = split_subject(subject)
    return own_context == context and own_name.startswith(name)


def qualify_reference(subject: str, reference: str) -> str:
    """Return the full name of the subject that a reference names; without a context it is in the one of `subject`."""
    if reference.startswith(":."):
        return normalize_subject(reference)
    return qualify(context_of(subject), reference)
