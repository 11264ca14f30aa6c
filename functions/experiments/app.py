"""Routes of the Lambda function ``experiments``."""

from __future__ import annotations

from experiments import messages as m
from experiments import search, service
from mlcore.http import get, lambda_handler, post

RPCS = (
    post(
        "/mlflow/experiments/create",
        m.CreateExperiment,
        service.create_experiment,
        "experiments.create",
        cost=2,
    ),
    get(
        "/mlflow/experiments/get",
        m.GetExperiment,
        service.get_experiment,
        "experiments.read_experiment",
        cost=1,
    ),
    get(
        "/mlflow/experiments/get-by-name",
        m.GetExperimentByName,
        service.get_experiment_by_name,
        "experiments.read_by_name",
        cost=2,
        read_units=2,
    ),
    post(
        "/mlflow/experiments/search",
        m.SearchExperiments,
        search.search_experiments,
        "shared_rules.anybody",
        cost=2,
        reads=True,
    ),
    get(
        "/mlflow/experiments/search",
        m.SearchExperiments,
        search.search_experiments,
        "shared_rules.anybody",
        cost=2,
    ),
    get(
        "/mlflow/experiments/list",
        m.ListExperiments,
        search.list_experiments,
        "shared_rules.anybody",
        until="1.30",
        cost=2,
    ),
    post(
        "/mlflow/experiments/update",
        m.UpdateExperiment,
        service.update_experiment,
        "experiments.update_experiment",
        cost=2,
    ),
    post(
        "/mlflow/experiments/delete",
        m.DeleteExperiment,
        service.delete_experiment,
        "experiments.delete",
        cost=2,
    ),
    post(
        "/mlflow/experiments/restore",
        m.RestoreExperiment,
        service.restore_experiment,
        "experiments.delete",
        cost=2,
    ),
    post(
        "/mlflow/experiments/set-experiment-tag",
        m.SetExperimentTag,
        service.set_experiment_tag,
        "experiments.update_experiment",
        cost=2,
    ),
    post(
        "/mlflow/experiments/delete-experiment-tag",
        m.DeleteExperimentTag,
        service.delete_experiment_tag,
        "experiments.update_experiment",
        since="3.2",
        cost=2,
    ),
    post(
        "/mlflow/experiments/search-datasets",
        m.SearchDatasets,
        search.search_datasets,
        "experiments.search_datasets",
        ajax_only=True,
        cost=2,
        reads=True,
    ),
)

handler = lambda_handler(RPCS)
