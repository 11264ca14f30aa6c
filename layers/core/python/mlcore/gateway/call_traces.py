"""Writes the trace of a gateway call into the experiment of the called endpoint."""

from __future__ import annotations

from typing import Final

from mlcore import reserved_tags
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.gateway.call_spans import Recording
from mlcore.observability import logger
from mlcore.repos.traces import redaction, span_packs, traces
from mlcore.spans import stored_span, trace_creation, trace_facts

ENDPOINT_ID: Final = reserved_tags.GATEWAY_ENDPOINT
REQUEST_TYPE: Final = reserved_tags.GATEWAY_REQUEST_TYPE
CALLER: Final = reserved_tags.GATEWAY_CALLER
USERNAME: Final = reserved_tags.GATEWAY_USERNAME
_SCHEMA_VERSION: Final = "3"
"""That of MLflow's clients since 3.0."""


def write(record: Recording) -> None:
    """Writes the trace of an AI gateway call, in two round trips: one reads the experiment, one
    writes the trace in a transaction. The caller has the answer already, so an error does not fail
    the call: it is logged."""
    context = {"endpoint_id": record.endpoint.endpoint_id, "workspace": record.workspace}
    try:
        if not _write_to_experiment(record):
            logger.warning("a call was not traced: its experiment is gone", extra=context)
    except Exception:
        logger.exception("a call was not traced", extra=context)


def _write_to_experiment(record: Recording) -> bool:
    """Writes the trace of a call. Returns False, without writing, if the endpoint's experiment is
    missing or deleted."""
    trace_id = f"tr-{record.trace_number:032x}"
    experiment, _ = traces.find_or_place(
        trace_id, record.endpoint.experiment_id or "", record.workspace
    )
    if experiment is None or experiment.lifecycle_stage != ACTIVE:
        return False
    spans = record.stored_spans(trace_id)
    rules = redaction.redactor(experiment, record.endpoint.endpoint_id)
    if rules is not None:
        from mlcore.spans import span_redaction  # noqa: PLC0415 -- only where rules apply

        spans = [span_redaction.span(rules, span) for span in spans]
    nodes = list(map(stored_span.node, spans))
    contents = list(map(stored_span.content, spans))
    facts = trace_creation.with_sums(
        trace_facts.facts_of_spans([(span, {}) for span in spans]),
        {node[0]: node for node in nodes},
    )
    packs = span_packs.packs_of(list(map(span_packs.Span, contents, nodes)))
    metadata = {
        reserved_tags.TRACE_SCHEMA: _SCHEMA_VERSION,
        ENDPOINT_ID: record.endpoint.endpoint_id,
        REQUEST_TYPE: record.request_type,
        CALLER: record.caller.program,
        USERNAME: record.caller.username,
    }
    trace_creation.create(
        trace_id,
        experiment,
        facts,
        packs,
        tags={reserved_tags.TRACE_NAME: record.spans[0].name},
        metadata={name: value for name, value in metadata.items() if value},
    )
    return True
