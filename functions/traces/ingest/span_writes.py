"""Writes the spans of one export to their traces, which may be new or exist already.

The spans of each trace are stored as packs (:mod:`mlcore.repos.traces.span_packs`), then the item
of the trace is updated. A new trace is created in one transaction with its first pack. An existing
trace is written on condition that its version is unchanged since it was read. Packs are written
before the item, so the last writer of the item sees the packs of all earlier writers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidState
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.prices.model_prices import Own
from mlcore.repos.experiments import experiments
from mlcore.repos.settings import llm_prices, redaction
from mlcore.repos.traces import archival, span_packs, traces
from mlcore.repos.traces import redaction as trace_redaction
from mlcore.repos.traces.span_packs import Node
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.spans import span_costs, stored_span, trace_creation, trace_facts, trace_state
from mlcore.spans.names import ARCHIVE_LOCATION_TAG
from traces.ingest import otlp, span_conversion

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor

KNOWN_SERVICES: Final = frozenset(
    ("claude-code", "codex_cli_rs", "codex_vscode", "gemini-cli", "qwen-code")
)
"""Services whose name is stored in their root spans. For others only the trace's tag has it."""

SpanOfResource = tuple[stored_span.StoredSpan, Mapping[str, Any]]
"""A span, and the attributes of the resource that made it."""
Target = tuple[Experiment | None, StoredTrace | None]
"""The experiment of a trace, and the trace if it exists."""


def convert_by_trace(exported: Iterable[otlp.ResourceSpans]) -> dict[str, list[SpanOfResource]]:
    """Converts spans to their stored form, grouped by the id of their trace. Raises
    Inconvertible."""
    spans_of_trace: dict[str, list[SpanOfResource]] = {}
    for resource, spans in exported:
        name = resource.get("service.name")
        service = name if isinstance(name, str) and name in KNOWN_SERVICES else None
        for span in spans:
            entry = (span_conversion.to_stored(span, service), resource)
            spans_of_trace.setdefault(span_conversion.trace_id_of(span), []).append(entry)
    return spans_of_trace


def log_spans(
    experiment_id: str, spans_of: Mapping[str, Sequence[SpanOfResource]], workspace: str
) -> None:
    """Writes the spans of all traces in parallel, usually in at most three round trips.

    Args:
        experiment_id: the experiment of the traces.
        spans_of: the spans by the id of their trace.

    Raises:
        InvalidParameterValue: one of the traces is in another experiment; nothing is written then,
            unless the trace was created there during this request.
        InvalidState: one of the traces is archived; nothing is written then.
        ResourceDoesNotExist: the experiment does not exist.
    """
    batches = [_SpanBatch(trace_id, spans) for trace_id, spans in spans_of.items()]
    with_prices = any(batch.needs_prices for batch in batches)
    targets = _read_targets(batches, experiment_id, workspace, with_prices=with_prices)
    _check_not_archived([trace for _, trace in targets if trace is not None])
    own_prices: Own = llm_prices.own() if with_prices else {}
    if redaction.has_rules():
        endpoints = [trace_redaction.endpoint_of(trace) if trace else None for _, trace in targets]
        # Traces share one redactor, since it bounds the time of its expressions.
        redactors = {
            endpoint_id: redaction.redactor(workspace, experiment_id, endpoint_id)
            for endpoint_id in set(endpoints)
        }
        for batch, endpoint_id in zip(batches, endpoints, strict=True):
            rules = redactors[endpoint_id]
            if rules is not None:
                batch.redact(rules)

    def write(batch: _SpanBatch, target: Target) -> None:
        batch.complete(own_prices)
        _write(batch, experiment_id, workspace, target)

    table.parallel(
        [partial(write, batch, target) for batch, target in zip(batches, targets, strict=True)]
    )


class _SpanBatch:
    """The spans of one trace in one request.

    ``nodes`` and ``packs`` are empty until :meth:`complete` was called.
    """

    def __init__(self, trace_id: str, spans: Sequence[SpanOfResource]) -> None:
        self.trace_id = trace_id
        self._spans_of_resources = spans
        self._spans = [span for span, _ in spans]
        self.needs_prices = any(span_costs.lacks_cost(span["attributes"]) for span in self._spans)
        self.nodes: dict[str, Node] = {}
        self.packs: list[span_packs.Pack] = []
        self.facts = trace_facts.facts_of_spans(spans)

    def redact(self, rules: Redactor) -> None:
        """Replaces the texts in the spans that the redaction rules match. Must be called before
        anything is derived from the spans."""
        from mlcore.spans import span_redaction  # noqa: PLC0415 -- only where rules apply

        spans = span_redaction.spans(rules, self._spans_of_resources)
        self._spans = [span for span, _ in spans]
        self.facts = trace_facts.facts_of_spans(spans)

    def complete(self, own_prices: Own) -> None:
        """Adds costs to spans that lack them, and computes ``nodes`` and ``packs``. If the request
        has two versions of a span, the one with the later end counts."""
        if self.needs_prices:
            for span in self._spans:
                span_costs.add_cost(span["attributes"], own_prices)
        nodes = list(map(stored_span.node, self._spans))
        contents = list(map(stored_span.content, self._spans))
        for node in nodes:
            current = self.nodes.get(node[0])
            if current is None or node[1] >= current[1]:
                self.nodes[node[0]] = node
        self.packs = span_packs.packs_of(list(map(span_packs.Span, contents, nodes)))

    @property
    def has_amounts(self) -> bool:
        """Whether a span has token usage or a cost."""
        return any(node[4] is not None or node[5] is not None for node in self.nodes.values())


def _read_targets(
    batches: Sequence[_SpanBatch], experiment_id: str, workspace: str, *, with_prices: bool
) -> list[Target]:
    """Reads the trace or, for a new trace, the experiment of each batch. If the cached prices have
    expired, reads those in parallel."""
    reads: list[Callable[[], Any]] = [
        partial(traces.find_or_place, batch.trace_id, experiment_id, workspace) for batch in batches
    ]
    if with_prices and llm_prices.remembered() is None:
        reads.append(llm_prices.own)
    return table.parallel(reads)[: len(batches)]


def _check_not_archived(traces_read: Iterable[StoredTrace]) -> None:
    archived = sorted(trace.trace_id for trace in traces_read if archival.is_archived(trace))
    if archived:
        names = ", ".join(f"'{trace_id}'" for trace_id in archived)
        raise InvalidState(f"Cannot log spans to archived traces: {names}.")


def _write(batch: _SpanBatch, experiment_id: str, workspace: str, target: Target) -> None:
    """Creates or extends the trace. A retry reads the target again."""
    known_target: Target | None = target

    def attempt() -> None:
        nonlocal known_target
        experiment, trace = known_target or traces.find_or_place(
            batch.trace_id, experiment_id, workspace
        )
        known_target = None
        if trace is None:
            if experiment is None:
                raise experiments.missing(experiment_id)
            _create(batch, experiment)
        else:
            _extend(batch, trace)

    retry_on_conflict("trace", attempt)


def _create(batch: _SpanBatch, experiment: Experiment) -> None:
    """Stores a new trace with its first spans. Raises WriteConflict if another request has created
    the trace meanwhile."""
    facts_with_sums = trace_creation.with_sums(batch.facts, batch.nodes)
    if not trace_creation.create(batch.trace_id, experiment, facts_with_sums, batch.packs):
        raise WriteConflict


def _extend(batch: _SpanBatch, trace: StoredTrace) -> None:
    """Adds the spans to an existing trace. Raises WriteConflict if the trace was deleted
    meanwhile."""
    owner = trace_creation.owner(trace.experiment, trace.trace_id)
    first_pack = trace.info.first_pack
    new_packs = [pack for pack in batch.packs if pack.suffix != first_pack]
    nodes_read: list[dict[str, Node]] = []

    def put() -> None:
        nonlocal first_pack
        if first_pack is None and span_packs.put_first(owner, new_packs[0]):
            first_pack = new_packs.pop(0).suffix
        span_packs.put(owner, new_packs)

    def read_nodes() -> None:
        nodes_read.append(span_packs.nodes(owner) if _needs_other_spans(batch, trace) else {})

    table.parallel([put, read_nodes])

    def decide(current: StoredTrace) -> TraceChange | None:
        before = trace_facts.parse(current.info.facts)
        after = trace_facts.join(before, batch.facts) if before else batch.facts
        known_nodes = nodes_read.pop() if nodes_read else {}
        if current is not trace and _needs_other_spans(batch, current):
            known_nodes = span_packs.nodes(owner)
        if before is None or _needs_other_spans(batch, current):
            after = trace_creation.with_sums(after, _merged(known_nodes, batch.nodes))
        # A trace that was archived since it was read is in the store again: these spans are there,
        # the others stay readable in their files until the trace is archived once more.
        change = trace_state.with_facts(current, after, current.info.first_pack or first_pack)
        if change is not None and archival.is_archived(current):
            change = change._replace(removals=[("tags", ARCHIVE_LOCATION_TAG)])
        # Even an unchanged trace is written, so its version changes: a concurrent request that sums
        # without having read these spans then fails and sums again.
        return change or TraceChange(current.info, {})

    if traces.write(trace, decide) is None:
        raise WriteConflict


def _needs_other_spans(batch: _SpanBatch, trace: StoredTrace) -> bool:
    """Whether the trace's sums of usage and cost may change, so that its other spans must be
    read."""
    before = trace_facts.parse(trace.info.facts)
    return before is not None and bool(batch.has_amounts or before.usage or before.cost)


def _merged(before: Mapping[str, Node], new: Mapping[str, Node]) -> dict[str, Node]:
    """Joins nodes by span id. Of two versions of a span the one that ends later counts; if both end
    at the same time, the new one."""
    merged = dict(before)
    for span_id, node in new.items():
        if span_id not in merged or node[1] >= merged[span_id][1]:
            merged[span_id] = node
    return merged
