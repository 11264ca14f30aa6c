"""Creates traces from spans. Spans are stored in *packs*, items with the spans of one request; a
*node* is the list of a span's few values that searches need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mlcore.entities.experiments import Experiment
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Node, Owner
from mlcore.search.text_fields import CONTENT
from mlcore.spans import trace_state, trace_totals
from mlcore.spans.trace_facts import SpanFacts

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def owner(experiment: Experiment, trace_id: str) -> Owner:
    """Returns the ids of a trace, under which packs of its spans are stored, and whether full-text
    search covers the content of its spans."""
    followed = experiment.followed.of_traces if experiment.followed else None
    indexed = followed is not None and followed.covers(CONTENT)
    return Owner(experiment.workspace, experiment.experiment_id, trace_id, indexed)


def with_sums(span_facts: SpanFacts, nodes: Mapping[str, Node]) -> SpanFacts:
    """Returns ``span_facts`` (what spans say about their trace) with the trace's token usage and
    cost. These are computed from ``nodes``, which has for each span of the trace, by id, the list
    of its few values that searches need."""
    parts = nodes.values()
    return span_facts._replace(
        usage=trace_totals.total_tokens(
            [trace_totals.SpanAmounts(node[0], node[2], node[1], node[4]) for node in parts]
        ),
        cost=trace_totals.total_cost(
            [trace_totals.SpanAmounts(node[0], node[2], node[1], node[5]) for node in parts]
        ),
    )


def create(
    trace_id: str,
    experiment: Experiment,
    span_facts: SpanFacts,
    packs: Sequence[span_packs.Pack],
    *,
    tags: Mapping[str, str] = _NOTHING,
    metadata: Mapping[str, str] = _NOTHING,
) -> bool:
    """Writes a trace and its first pack of spans in one transaction, after the other packs.

    Args:
        tags, metadata: added to those from the spans, which they override.

    Returns:
        False if the trace exists already. The caller must then read it and add the spans to it.
    """
    pack_owner = owner(experiment, trace_id)
    first, *other_packs = packs
    span_packs.put(pack_owner, other_packs)
    maps = trace_state.tags_and_metadata(span_facts, experiment, trace_id)
    maps = {
        "tags": {**maps["tags"], **tags},
        "trace_metadata": {**maps["trace_metadata"], **metadata},
    }
    created = traces.create(
        trace_id,
        experiment,
        trace_state.info(None, span_facts, first.suffix),
        maps,
        [span_packs.first_item(pack_owner, first)],
    )
    return created is not None
