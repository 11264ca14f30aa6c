"""Searches the datasets that the runs of experiments use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mlcore.auth.requirements import Reader
from mlcore.limits.run_datasets import check_search_datasets
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs.core import datasets

MAX_SUMMARIES = 1_000


def search(workspace: str, experiment_ids: Sequence[str], readable: Reader) -> dict[str, Any]:
    """Returns MLflow's JSON of the datasets of the experiments, each once for each context in which
    a run used it; at most 1,000.

    Args:
        readable: tells which experiments the caller may read.
    """
    check_search_datasets(experiment_ids)
    known = experiments.find_existing(canonical_ids(experiment_ids), workspace)
    summaries = (
        summary
        for experiment in known
        if readable(experiment.experiment_id)
        for summary in datasets.summaries(experiment)
    )
    inputs = [
        {name: value for name, value in summary._asdict().items() if value is not None}
        for summary in islice(summaries, MAX_SUMMARIES)
    ]
    return {"dataset_summaries": inputs} if inputs else {}
