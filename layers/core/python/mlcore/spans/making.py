"""A trace that is made of its spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mlcore.entities.experiments import Experiment
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Node, Owner
from mlcore.search.text_fields import CONTENT
from mlcore.spans import state, usage
from mlcore.spans.facts import Facts

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def owner(experiment: Experiment, trace_id: str) -> Owner:
    followed = experiment.followed.of_traces if experiment.followed else None
    indexed = followed is not None and followed.covers(CONTENT)
    return Owner(experiment.workspace, experiment.experiment_id, trace_id, indexed)


def summed(span_facts: Facts, nodes: Mapping[str, Node]) -> Facts:
    """With usage and cost, of all spans by id."""
    parts = nodes.values()
    return span_facts._replace(
        usage=usage.tokens([usage.Part(node[0], node[2], node[1], node[4]) for node in parts]),
        cost=usage.cost([usage.Part(node[0], node[2], node[1], node[5]) for node in parts]),
    )


def create(
    trace_id: str,
    experiment: Experiment,
    told: Facts,
    packs: Sequence[span_packs.Pack],
    *,
    tags: Mapping[str, str] = _NOTHING,
    metadata: Mapping[str, str] = _NOTHING,
) -> bool:
    """The trace and its first pack in one transaction, other packs before.

    Args:
        tags, metadata: what is known beside what the spans tell.

    Returns:
        False if the trace is there already: read it and decide again.
    """
    place = owner(experiment, trace_id)
    first, *further = packs
    span_packs.put(place, further)
    maps = state.first_maps(told, experiment, trace_id)
    maps = {
        "tags": {**maps["tags"], **tags},
        "trace_metadata": {**maps["trace_metadata"], **metadata},
    }
    return traces.create(
        trace_id,
        experiment,
        state.info(None, told, first.suffix),
        maps,
        [span_packs.first_item(place, first)],
    )
