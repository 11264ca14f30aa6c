"""Finds experiments of a workspace by conditions on their names.

GSI5 holds the names, in order. Conditions are tested on index entries, and only experiments whose
name may match are read. So results lag only by the index's replication, never by the indexer. The
items of the full-text index and ``E#NAME_REV`` items would make a search for the middle or the end
of a name cheaper, but they may be stale, and a search could not notice that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.table import table
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.models.experiments import Experiment
from mlcore.repos.experiments import experiments
from mlcore.search.fields import ATTRIBUTE
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.run_plan import literal_prefix

SURELY_WHOLE = 900
"""Names up to this many bytes are in the key unchanged; of a longer name the key may hold only a
prefix."""


def ids(workspace: str, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yields the ids of all experiments of a workspace whose names meet the comparisons of a
    filter, and possibly ids of others.

    A name given with ``=`` takes two consistent GetItem. Other conditions on the name take a Query
    of the names with the pattern's literal prefix, about 30 names per half read unit. Without a
    condition on the name, all experiments are listed, through GSI2.
    """
    named = [
        comparison
        for comparison in comparisons
        if (comparison.kind, comparison.key) == (ATTRIBUTE, "name")
    ]
    if not named:
        yield from experiments.ids_of_workspace(workspace)
        return
    exact = next((str(condition.value) for condition in named if condition.operator == "="), None)
    if exact is not None:
        holder = experiments.find_by_name(workspace, exact)
        if holder is not None:
            yield holder.experiment_id
        return
    if workspace == DEFAULT_WORKSPACE:
        yield DEFAULT_EXPERIMENT_ID  # it may have no item yet
    tests = [value_test(condition) for condition in named]
    begin = max((_begin(condition) for condition in named), key=len)
    pk, prefix = keys.gsi5_experiment_begin(workspace, begin)
    attributes: list[ItemAttribute[Any]] = [Experiment.PK, Experiment.gsi5sk]
    for item in table.query_all(pk, index="GSI5", prefix=prefix, attributes=attributes):
        entry = Experiment.of(item)
        experiment_id = keys.experiment_id_of(entry.PK)
        if experiment_id == DEFAULT_EXPERIMENT_ID and workspace == DEFAULT_WORKSPACE:
            continue
        name = entry.gsi5sk or ""
        if len(name.encode()) > SURELY_WHOLE or all(test(name) for test in tests):
            yield experiment_id


def _begin(comparison: Comparison) -> str:
    return literal_prefix(str(comparison.value)) if comparison.operator == "LIKE" else ""
