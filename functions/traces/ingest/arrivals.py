"""Stores spans that came together, whatever of their traces is there already.

Each trace's spans become packs (:mod:`mlcore.repos.traces.span_packs`), then the trace learns of
them: a new one is made in one transaction with its first pack, another is written at the version
that it was read at. A pack is there before its trace tells of it; so whoever writes the trace last
has seen the packs of all who wrote it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.prices.price_list import Own
from mlcore.repos.experiments import experiments
from mlcore.repos.settings import llm_prices
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Node
from mlcore.repos.traces.traces import Change, StoredTrace
from mlcore.settle import Conflict, settle
from mlcore.spans import costs, facts, making, state, stored
from traces.ingest import otlp, spans

KNOWN_SERVICES: Final = frozenset(
    ("claude-code", "codex_cli_rs", "codex_vscode", "gemini-cli", "qwen-code")
)
"""Services whose root spans tell their name; others do only by the trace's tag."""

Resourced = tuple[stored.StoredSpan, Mapping[str, Any]]
"""A span, and the attributes of the resource that made it."""
Place = tuple[Experiment | None, StoredTrace | None]
"""The experiment where a trace would be made, and the trace wherever it is."""


def by_trace(exported: Iterable[otlp.ResourceSpans]) -> dict[str, list[Resourced]]:
    """What is stored of all spans, by the id of their trace. Raises Inconvertible."""
    found: dict[str, list[Resourced]] = {}
    for resource, made in exported:
        name = resource.get("service.name")
        service = name if isinstance(name, str) and name in KNOWN_SERVICES else None
        for span in made:
            entry = (spans.of_otlp(span, service), resource)
            found.setdefault(spans.trace_id_of(span), []).append(entry)
    return found


def log_spans(
    experiment_id: str, spans_of: Mapping[str, Sequence[Resourced]], workspace: str
) -> None:
    """Three round trips at most, for all traces side by side. A trace that is there already stays
    in its experiment."""
    exports = [_Export(trace_id, together) for trace_id, together in spans_of.items()]
    places: list[Place | None] = [None] * len(exports)
    own: Own = {}
    if any(export.needs_prices for export in exports):
        if llm_prices.remembered() is None:
            places = _places_beside_prices(exports, experiment_id, workspace)
        own = llm_prices.own()

    def log(export: _Export, place: Place | None) -> None:
        export.complete(own)
        _log(export, experiment_id, workspace, place)

    table.parallel([partial(log, *one) for one in zip(exports, places, strict=True)])


class _Export:
    """The spans of one trace in one request.

    Nodes and packs are there once the spans are complete, for which prices may have to be known.
    """

    def __init__(self, trace_id: str, together: Sequence[Resourced]) -> None:
        self.trace_id = trace_id
        self._spans = [span for span, _ in together]
        self.needs_prices = any(costs.is_due(span["attributes"]) for span in self._spans)
        self.nodes: dict[str, Node] = {}
        self.packs: list[span_packs.Pack] = []
        self.facts = facts.of_spans(together)

    def complete(self, own: Own) -> None:
        if self.needs_prices:
            for span in self._spans:
                costs.complete(span["attributes"], own)
        nodes = list(map(stored.node, self._spans))
        contents = list(map(stored.content, self._spans))
        for node in nodes:
            known = self.nodes.get(node[0])
            if known is None or node[1] >= known[1]:
                self.nodes[node[0]] = node
        self.packs = span_packs.packs_of(list(map(span_packs.Span, contents, nodes)))

    @property
    def has_amounts(self) -> bool:
        return any(node[4] is not None or node[5] is not None for node in self.nodes.values())


def _places_beside_prices(
    exports: Sequence[_Export], experiment_id: str, workspace: str
) -> list[Place | None]:
    """Once in a while prices have to be read, too: at the same time."""
    reads: list[Callable[[], Any]] = [
        partial(traces.find_or_place, export.trace_id, experiment_id, workspace)
        for export in exports
    ]
    return table.parallel([*reads, llm_prices.own])[: len(exports)]


def _log(export: _Export, experiment_id: str, workspace: str, place: Place | None) -> None:
    known = place

    def attempt() -> None:
        nonlocal known
        experiment, trace = known or traces.find_or_place(export.trace_id, experiment_id, workspace)
        known = None
        if trace is None:
            if experiment is None:
                raise experiments.missing(experiment_id)
            _create(export, experiment)
        else:
            _extend(export, trace)

    settle("trace", attempt)


def _create(export: _Export, experiment: Experiment) -> None:
    """Raises Conflict: the trace came to be meanwhile."""
    told = making.summed(export.facts, export.nodes)
    if not making.create(export.trace_id, experiment, told, export.packs):
        raise Conflict


def _extend(export: _Export, trace: StoredTrace) -> None:
    """Raises Conflict: the trace is gone."""
    owner = making.owner(trace.experiment, trace.trace_id)
    first_pack = trace.info.first_pack
    new = [pack for pack in export.packs if pack.suffix != first_pack]
    held: list[dict[str, Node]] = []

    def put() -> None:
        nonlocal first_pack
        if first_pack is None and span_packs.put_first(owner, new[0]):
            first_pack = new.pop(0).suffix
        span_packs.put(owner, new)

    def read_nodes() -> None:
        held.append(span_packs.nodes(owner) if _sums_again(export, trace) else {})

    table.parallel([put, read_nodes])

    def decide(current: StoredTrace) -> Change | None:
        before = facts.parse(current.info.facts)
        told = facts.join(before, export.facts) if before else export.facts
        known = held.pop() if held else {}
        if current is not trace and _sums_again(export, current):
            known = span_packs.nodes(owner)
        if before is None or _sums_again(export, current):
            told = making.summed(told, _merged(known, export.nodes))
        change = state.with_facts(current, told, current.info.first_pack or first_pack)
        # Who sums meanwhile has perhaps not read these spans, and must find that he is not alone.
        return change or Change(current.info, {})

    if traces.write(trace, decide) is None:
        raise Conflict


def _sums_again(export: _Export, trace: StoredTrace) -> bool:
    """Whether the trace's sums may change, and other spans are needed to tell."""
    before = facts.parse(trace.info.facts)
    return before is not None and bool(export.has_amounts or before.usage or before.cost)


def _merged(before: Mapping[str, Node], new: Mapping[str, Node]) -> dict[str, Node]:
    """Of two versions of a span the one that ends later, or else the new one."""
    merged = dict(before)
    for span_id, node in new.items():
        if span_id not in merged or node[1] >= merged[span_id][1]:
            merged[span_id] = node
    return merged
