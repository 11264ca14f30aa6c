"""Rules about traces: names, tags, sessions, links, and the arguments of delete-traces."""

from __future__ import annotations

import re
from typing import Final

from mlcore.entities.tags import Tag
from mlcore.errors import InvalidParameterValue
from mlcore.limits.shared_checks import MAX_KEY_LENGTH, check_key, check_length, truncated
from mlcore.wire import invalid_value

MAX_TAG_VALUE_LENGTH: Final = 8000
MAX_TRACE_NAME_LENGTH: Final = 4096
MAX_SESSION_LENGTH: Final = 250
MAX_LINKS: Final = 100
_NOT_IN_IDS: Final = re.compile(r"[%?#\x00-\x1f\x7f]")


def check_trace_id(trace_id: str) -> None:
    """Checks the id of a new trace: it must be usable as the name of a folder, in which the trace's
    files are. Raises InvalidParameterValue."""
    if trace_id.rstrip(" .") != trace_id or not trace_id or "/" in trace_id:
        raise InvalidParameterValue(
            invalid_value("trace_id", trace_id, "must be a single path component")
        )
    if _NOT_IN_IDS.search(trace_id):
        raise InvalidParameterValue(
            invalid_value(
                "trace_id", trace_id, "must not contain '%', '?', '#' or control characters"
            )
        )


def may_be_trace_id(trace_id: str) -> bool:
    """Whether a trace may have this id (:func:`check_trace_id`)."""
    try:
        check_trace_id(trace_id)
        trace_id.encode()
    except (InvalidParameterValue, UnicodeEncodeError):
        return False
    return True


def check_experiment(trace_id: str, present: str, wanted: str) -> None:
    """Checks that a trace is in the experiment in which a request wants to write it. Raises
    InvalidParameterValue otherwise."""
    if present != wanted:
        raise InvalidParameterValue(
            f"Trace with ID '{trace_id}' already exists in another experiment."
        )


def check_tag(key: str, value: str) -> Tag:
    """Checks a tag of a trace. Returns it with its value truncated to MLflow's limit."""
    check_key(key, "key")
    check_length("key", MAX_KEY_LENGTH, key)
    return Tag(key, truncated("value", MAX_TAG_VALUE_LENGTH, value))


def check_trace_name(name: str | None) -> None:
    if name is not None:
        check_length("Trace name", MAX_TRACE_NAME_LENGTH, name)


def check_session(session: str) -> str:
    check_length("Session ID", MAX_SESSION_LENGTH, session)
    return session


def check_deletion(
    max_timestamp_millis: int | None, max_traces: int | None, trace_ids: list[str]
) -> None:
    if max_timestamp_millis is None and not trace_ids:
        raise InvalidParameterValue(
            "Either `max_timestamp_millis` or `trace_ids` must be specified."
        )
    if max_timestamp_millis is not None and trace_ids:
        raise InvalidParameterValue(
            "Only one of `max_timestamp_millis` and `trace_ids` can be specified."
        )
    if trace_ids and max_traces is not None:
        raise InvalidParameterValue("`max_traces` can't be specified if `trace_ids` is specified.")
    if max_traces is not None and max_traces <= 0:
        raise InvalidParameterValue(
            f"`max_traces` must be a positive integer, received {max_traces}."
        )


def check_links(trace_ids: list[str]) -> None:
    if len(trace_ids) > MAX_LINKS:
        raise InvalidParameterValue(
            f"Cannot link more than {MAX_LINKS} traces to a run in a single request. "
            f"Provided {len(trace_ids)} traces."
        )
