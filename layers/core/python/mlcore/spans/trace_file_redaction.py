"""Keeps private texts out of the files of traces, if rules of the setting ``redaction`` apply.

A client may store a trace's spans as the file ``traces.json`` in the trace's folder. Its texts are
redacted like those of other spans. Where rules apply, other files of a trace are refused, and so
are uploads that bypass this server, because it cannot redact them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from mlcore import errors
from mlcore.repos.settings import redaction
from mlcore.repos.traces import redaction as trace_redaction
from mlcore.repos.traces import traces
from mlcore.wire.json_text import load_json

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor

_FILE_OF_TRACE: Final = re.compile(r"(?:^|/)traces/([^/]+)/artifacts/(.+)", re.IGNORECASE)
_SPANS_FILE: Final = "traces.json"


def rules_of(key: str, workspace: str) -> Redactor | None:
    """Returns the redaction rules for the artifact file at a key; None if it is no file of a trace,
    or no rule applies to its trace. For an unknown trace all rules apply, since its experiment is
    unknown, too. Raises TemporarilyUnavailable if the rules cannot be read."""
    match = _FILE_OF_TRACE.search(key)
    if match is None or not redaction.has_rules():
        return None
    trace = traces.find(match[1], workspace)
    if trace is None:
        return redaction.every_rule()
    return trace_redaction.redactor_of(trace)


def can_be_redacted(key: str) -> bool:
    """Whether a storage key is that of a trace's ``traces.json``, the only redactable file."""
    match = _FILE_OF_TRACE.search(key)
    return match is not None and match[2].lower() == _SPANS_FILE


def redacted(key: str, data: bytes, workspace: str) -> bytes:
    """Returns the content to store at a key of the artifact store: redacted if rules apply and it
    is a trace's file of spans, otherwise unchanged.

    Raises:
        InvalidParameterValue: rules apply to the file of a trace, but it cannot be redacted.
        TemporarilyUnavailable: the rules cannot be read.
    """
    rules = rules_of(key, workspace)
    if rules is None:
        return data
    if not can_be_redacted(key):
        raise _refused("only its spans (traces.json) can be redacted, other files are not stored")
    return redacted_spans(rules, data)


def redacted_spans(rules: Redactor, data: bytes) -> bytes:
    """Redacts the content of a file of spans and returns it. Raises InvalidParameterValue if it is
    no JSON of spans."""
    from mlcore.spans import span_redaction  # noqa: PLC0415 -- only where rules apply

    try:
        content = span_redaction.file(rules, load_json(data))
        return json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise _refused("this file is no JSON of spans") from None


def check_direct(key: str, workspace: str) -> None:
    """Checks that a file may be uploaded directly to the artifact store. Raises
    InvalidParameterValue if redaction rules apply to it, because it is a file of a trace: a direct
    upload would bypass the redaction."""
    if rules_of(key, workspace) is not None:
        raise _refused(
            "its files cannot be uploaded to the store directly. Send the spans to /v1/traces"
        )


def _refused(reason: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        f"Texts of this trace are redacted before they are stored: {reason}."
    )
