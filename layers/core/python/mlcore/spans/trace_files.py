"""Keeps private texts out of the files of traces, if rules of the setting ``redaction`` apply.

A client may store a trace's spans as the file ``traces.json`` in the trace's folder. Its texts are
redacted like those of other spans. What this server cannot read on its way to the store is
refused then: other files of a trace, and uploads that go to the store directly.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from mlcore import errors
from mlcore.repos.settings import redaction
from mlcore.repos.traces import redaction as trace_redaction
from mlcore.repos.traces import traces

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor

_FILE_OF_TRACE: Final = re.compile(r"(?:^|/)traces/([^/]+)/artifacts/(.+)", re.IGNORECASE)
_SPANS_FILE: Final = "traces.json"


def rules_of(key: str, workspace: str) -> Redactor | None:
    """Returns the rules for the file at a key; None if it is no file of a trace, or no rule applies
    to its trace. Of an unknown trace every rule counts, since its experiment is unknown, too.
    Raises TemporarilyUnavailable if the rules cannot be read."""
    match = _FILE_OF_TRACE.search(key)
    if match is None or not redaction.has_rules():
        return None
    trace = traces.find(match[1], workspace)
    if trace is None:
        return redaction.every_rule()
    return trace_redaction.redactor_of(trace)


def can_be_redacted(key: str) -> bool:
    """Whether a trace's file is the one with its spans, which alone can be redacted."""
    match = _FILE_OF_TRACE.search(key)
    return match is not None and match[2].lower() == _SPANS_FILE


def redacted(key: str, data: bytes, workspace: str) -> bytes:
    """Returns the content to store at a key: for the spans of a trace the redacted ones, else the
    same bytes.

    Raises:
        InvalidParameterValue: the file of a trace is none that can be redacted.
        TemporarilyUnavailable: the rules cannot be read.
    """
    rules = rules_of(key, workspace)
    if rules is None:
        return data
    if not can_be_redacted(key):
        raise _refused("only its spans (traces.json) can be redacted, other files are not stored")
    return redacted_spans(rules, data)


def redacted_spans(rules: Redactor, data: bytes) -> bytes:
    """Returns the content of a file of spans as it may be stored. Raises InvalidParameterValue if
    it is none."""
    from mlcore.spans import redacted as redacted_span_parts  # noqa: PLC0415 -- only where rules apply

    try:
        content = redacted_span_parts.file(rules, json.loads(data))
        return json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise _refused("this file is no JSON of spans") from None


def check_direct(key: str, workspace: str) -> None:
    """Checks that a file may be uploaded to the store directly. Raises InvalidParameterValue if it
    is a trace's and would have to be redacted."""
    if rules_of(key, workspace) is not None:
        raise _refused(
            "its files cannot be uploaded to the store directly. Send the spans to /v1/traces"
        )


def _refused(reason: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        f"Texts of this trace are redacted before they are stored: {reason}."
    )
