"""Scorers in the shape of MLflow's JSON."""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.evaluation.scorers import ScorerVersion

MAX_INT32: Final = 2**31 - 1


def scorer(version: ScorerVersion) -> dict[str, Any]:
    """``mlflow.Scorer``, in which an experiment's id is an int32: one that is no such number is
    left out, or clients could not read the answer."""
    fields: dict[str, Any] = {}
    if version.experiment_id.isdecimal() and int(version.experiment_id) <= MAX_INT32:
        fields["experiment_id"] = int(version.experiment_id)
    return {
        **fields,
        "scorer_name": version.name,
        "scorer_version": version.version,
        "serialized_scorer": version.serialized_scorer,
        "creation_time": version.creation_time,
        "scorer_id": version.scorer_id,
    }
