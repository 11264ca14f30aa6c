"""The configuration of trace archival: after which time the spans of a trace move from the table
to files (the *retention*).

The server's environment sets a retention. A workspace may set another one. An experiment may set a
shorter one, or a longer one if :data:`LONG_RETENTION` lists it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import reserved_tags
from mlcore.wire.json_text import load_json

RETENTION: Final = "TRACE_ARCHIVAL_RETENTION"
"""Environment variable: the server's retention, such as ``30d``; empty if traces are not
archived."""
LONG_RETENTION: Final = "TRACE_ARCHIVAL_LONG_RETENTION"
"""Environment variable: ids of the experiments that may keep spans longer, separated by commas."""

MAX_LENGTH: Final = 32
_DURATION: Final = re.compile("[1-9][0-9]*[mhd]")
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Server(NamedTuple):
    """The configuration of trace archival for the whole server."""

    retention: str
    long_retention: frozenset[str]
    """The ids of the experiments that may keep spans longer than the server or workspace says."""


class ArchiveNow(NamedTuple):
    """A request to archive the traces of an experiment now."""

    text: str
    """The value of the tag."""
    older_than_ms: int
    """0 for all traces."""


def server() -> Server | None:
    """Returns the server's configuration of trace archival; None if traces are not archived."""
    retention = os.environ.get(RETENTION, "").strip()
    if milliseconds(retention) is None:
        return None
    ids = os.environ.get(LONG_RETENTION, "").split(",")
    return Server(retention, frozenset(filter(None, (text.strip() for text in ids))))


def milliseconds(duration: Any) -> int | None:
    """Returns the milliseconds of a duration such as ``30m``, ``12h`` or ``7d``; None for anything
    else."""
    text = duration.strip() if isinstance(duration, str) else ""
    if len(text) > MAX_LENGTH or not _DURATION.fullmatch(text):
        return None
    return int(text[:-1]) * _UNIT_MS[text[-1]]


def effective_retention(
    config: Server, workspace_retention: str | None, experiment_id: str, tags: Mapping[str, str]
) -> str:
    """Returns the time, such as ``30d``, after which an experiment's traces are archived.

    Args:
        workspace_retention: the time that the experiment's workspace sets; None if it sets none.
        tags: the experiment's. A time in a tag is ignored if it is invalid or longer than allowed.
    """
    broader = workspace_retention or config.retention
    own = _object(tags.get(reserved_tags.TRACE_RETENTION))
    retention = own.get("value") if own is not None and own.get("type") == "duration" else None
    own_ms, broader_ms = milliseconds(retention), milliseconds(broader)
    if own_ms is None or broader_ms is None:
        return broader
    if own_ms <= broader_ms or experiment_id in config.long_retention:
        return str(retention).strip()
    return broader


def archive_now(tags: Mapping[str, str]) -> ArchiveNow | None:
    """Returns the request in an experiment's tags to archive the experiment's traces now; None if
    there is none or it is malformed."""
    text = tags.get(reserved_tags.ARCHIVE_NOW)
    fields = _object(text)
    if text is None or fields is None:
        return None
    older_than = fields.get("older_than")
    if older_than is None:
        return ArchiveNow(text, 0)
    duration = milliseconds(older_than)
    return None if duration is None else ArchiveNow(text, duration)


def _object(text: str | None) -> Mapping[str, Any] | None:
    """Returns the JSON object in a tag; None if it has none."""
    try:
        fields = load_json(text or "")
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
