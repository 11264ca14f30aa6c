"""Experiments of a workspace by conditions on their names, without reading the other experiments.

GSI5 holds the names themselves, in order. A condition is tested on them; only experiments whose
name may match are read. So the answer follows the index's replication alone, never the indexer: FTS
and ``E#NAME_REV`` items of experiments would cost less for an infix, but be late without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.db.table import table
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.models.experiments import Experiment
from mlcore.repos.experiments import experiments
from mlcore.search.fields import ATTRIBUTE
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.plan import literal_begin

SURELY_WHOLE = 900
"""Bytes up to which a name is in a key as it is; of a longer one the key may hold a beginning."""


def ids(workspace: str, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """At least those of the experiments that meet the conditions.

    A name asked for by ``=``: two consistent GetItem. Any other condition on the name: half a read
    unit for each 30 names or so, of those only that begin as the pattern does. No condition on the
    name: all, through GSI2.
    """
    named = [one for one in comparisons if (one.kind, one.key) == (ATTRIBUTE, "name")]
    if not named:
        yield from experiments.ids_of_workspace(workspace)
        return
    exact = next((str(one.value) for one in named if one.operator == "="), None)
    if exact is not None:
        holder = experiments.find_by_name(workspace, exact)
        if holder is not None:
            yield holder.experiment_id
        return
    if workspace == DEFAULT_WORKSPACE:
        yield DEFAULT_EXPERIMENT_ID  # which may not have been made yet
    tests = [value_test(one) for one in named]
    begin = max((_begin(one) for one in named), key=len)
    pk, prefix = keys.gsi5_experiment_begin(workspace, begin)
    asked: list[ItemAttribute[Any]] = [Experiment.PK, Experiment.gsi5sk]
    for item in table.query_all(pk, index="GSI5", prefix=prefix, attributes=asked):
        found = Experiment.of(item)
        experiment_id = keys.experiment_id_of(found.PK)
        if experiment_id == DEFAULT_EXPERIMENT_ID and workspace == DEFAULT_WORKSPACE:
            continue
        name = found.gsi5sk or ""
        if len(name.encode()) > SURELY_WHOLE or all(test(name) for test in tests):
            yield experiment_id


def _begin(comparison: Comparison) -> str:
    return literal_begin(str(comparison.value)) if comparison.operator == "LIKE" else ""
