"""Traces of calls, in the experiments of their endpoints."""

from __future__ import annotations

from typing import Final

from mlcore.entities.stages import ACTIVE
from mlcore.gateway.recording import Recording
from mlcore.observability import logger
from mlcore.repos.traces import span_packs, traces
from mlcore.spans import facts, making, stored
from mlcore.spans.names import TRACE_NAME_TAG

ENDPOINT_ID: Final = "mlflow.gateway.endpointId"
REQUEST_TYPE: Final = "mlflow.gateway.requestType"
CALLER: Final = "mlflow.gateway.caller"
USERNAME: Final = "mlflow.auth.username"


def write(record: Recording) -> None:
    """Two round trips: the experiment, and the trace in one transaction. The caller has the answer,
    so nothing fails for it: that a call was not traced is told by the log."""
    about = {"endpoint_id": record.endpoint.endpoint_id, "workspace": record.workspace}
    try:
        if not _written(record):
            logger.warning("a call was not traced: its experiment is gone", extra=about)
    except Exception:
        logger.exception("a call was not traced", extra=about)


def _written(record: Recording) -> bool:
    trace_id = f"tr-{record.trace_number:032x}"
    experiment, _ = traces.find_or_place(
        trace_id, record.endpoint.experiment_id or "", record.workspace
    )
    if experiment is None or experiment.lifecycle_stage != ACTIVE:
        return False
    spans = [span.stored(record.trace_number, trace_id) for span in record.spans]
    nodes = list(map(stored.node, spans))
    contents = list(map(stored.content, spans))
    told = making.summed(
        facts.of_spans([(span, {}) for span in spans]), {node[0]: node for node in nodes}
    )
    packs = span_packs.packs_of(list(map(span_packs.Span, contents, nodes)))
    metadata = {
        ENDPOINT_ID: record.endpoint.endpoint_id,
        REQUEST_TYPE: record.request_type,
        CALLER: record.caller.program,
        USERNAME: record.caller.username,
    }
    making.create(
        trace_id,
        experiment,
        told,
        packs,
        tags={TRACE_NAME_TAG: record.spans[0].name},
        metadata={name: value for name, value in metadata.items() if value},
    )
    return True
