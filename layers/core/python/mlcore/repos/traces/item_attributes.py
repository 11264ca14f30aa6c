"""The attributes of a trace's item that are not maps, with its keys in the local indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.models.traces import Trace as TraceItem

if TYPE_CHECKING:
    from mlcore.repos.traces.traces import Info


def values(
    trace_id: str, info: Info, name: str | None, session: str | None
) -> list[tuple[ItemAttribute[Any], Any]]:
    """Returns the item's attributes for a trace's info, name and session; None for absent
    values."""
    time = info.request_time
    by_session = None if session is None else keys.lsi5_trace(session, time, trace_id)
    return [
        (TraceItem.request_time, time),
        (TraceItem.execution_duration, info.execution_duration),
        (TraceItem.state, info.state),
        (TraceItem.client_request_id, info.client_request_id),
        (TraceItem.request_preview, info.request_preview),
        (TraceItem.response_preview, info.response_preview),
        (TraceItem.given, info.given),
        (TraceItem.facts, info.facts),
        (TraceItem.first_pack, info.first_pack),
        (TraceItem.name, name),
        (TraceItem.lsi2sk, keys.lsi2_trace(time, trace_id)),
        (TraceItem.lsi3sk, keys.lsi3_trace(info.state, time, trace_id)),
        (TraceItem.lsi4sk, None if name is None else keys.lsi4_trace(name, trace_id)),
        (TraceItem.lsi5sk, by_session),
    ]
