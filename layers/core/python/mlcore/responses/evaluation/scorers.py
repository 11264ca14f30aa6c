"""Converts scorers and their settings for online scoring to the JSON of MLflow's API."""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.evaluation.online_scorers import OnlineScorer
from mlcore.entities.evaluation.scorers import ScorerVersion

MAX_INT32: Final = 2**31 - 1


def scorer(version: ScorerVersion) -> dict[str, Any]:
    """Returns the JSON of ``mlflow.Scorer``. Its experiment id is an int32, so an id that is not
    one is omitted: clients could not parse it."""
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


def online_config(config: OnlineScorer) -> dict[str, Any]:
    """Returns the JSON of MLflow's ``OnlineScoringConfig``. Its ``filter_string`` is left out if a
    scorer has no filter of traces."""
    fields: dict[str, Any] = {
        "online_scoring_config_id": config.config_id,
        "scorer_id": config.scorer_id,
        "sample_rate": config.sample_rate,
        "experiment_id": config.experiment_id,
    }
    if config.filter_string is not None:
        fields["filter_string"] = config.filter_string
    return fields
