"""Reads traces from the table, strongly consistently, for the system tables. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.repos.traces import traces, traces_by_time
from mlcore.repos.traces.traces import StoredTrace
from mlcore.system_tables.experiment_source import Stored
from mlcore.system_tables.run_source import TOGETHER


def find_traces(refs: Sequence[tuple[str, str]], known: dict[str, Stored]) -> Iterator[StoredTrace]:
    """Yields the existing traces among those given. Sends one BatchGetItem per hundred traces, and
    a Query for each map of a trace that has overflowed.

    Args:
        refs: (experiment id, trace id).
        known: the experiments by id; traces of others are skipped.
    """
    wanted = [identity for identity in refs if identity[0] in known]
    for at in range(0, len(wanted), TOGETHER):
        part = wanted[at : at + TOGETHER]
        items = table.batch_get([keys.trace(*identity) for identity in part])
        for (experiment_id, _), item in zip(part, items, strict=True):
            if item is not None:
                yield traces.of_item(item, known[experiment_id].experiment)


def traces_of(experiment: Experiment) -> Iterator[StoredTrace]:
    """Yields all traces of an experiment, page by page."""
    yield from traces_by_time.newest_first(
        [experiment.experiment_id],
        experiment.workspace,
        traces_by_time.Window(),
        page_items=TOGETHER,
    )


def trace_ids(experiment: Experiment) -> Iterator[str]:
    """Yields the ids of all traces of an experiment, page by page."""
    return (trace.trace_id for trace in traces_of(experiment))
