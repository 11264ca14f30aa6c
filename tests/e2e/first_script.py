# What is called is in that client and in no later one.
# mypy: disable-error-code="attr-defined"
"""What MLflow 1.30 calls and no later client does: the lists.

    python first_script.py TRACKING_URI NAME

Prints ``ok <client version>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import warnings

warnings.simplefilter("ignore")  # setuptools says that pkg_resources is old

import mlflow  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import ViewType  # noqa: E402


def pages(call, **named):
    """All that a list holds, three at a time."""
    results, token = [], None
    while True:
        page = call(max_results=3, page_token=token, **named)
        assert len(page) <= 3, page
        results += page
        token = page.token
        if not token:
            return results


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri, uri)
    made = [client.create_experiment(f"{name} {number}") for number in range(5)]
    client.delete_experiment(made[0])
    listed = [experiment.experiment_id for experiment in client.list_experiments()]
    assert [each for each in listed if each in made] == made[1:], listed
    assert listed[0] == "0" or "0" not in listed, listed
    assert [experiment.experiment_id for experiment in pages(client.list_experiments)] == listed
    deleted = [experiment.name for experiment in client.list_experiments(ViewType.DELETED_ONLY)]
    assert f"{name} 0" in deleted, deleted
    assert f"{name} 1" not in deleted, deleted
    every = pages(client.list_experiments, view_type=ViewType.ALL)
    assert {*made} <= {experiment.experiment_id for experiment in every}

    for number in range(5):
        client.create_registered_model(f"{name} {number}", {"n": str(number)})
    client.create_model_version(f"{name} 3", "s3://bucket/model")
    models = client.list_registered_models()
    mine = [model for model in models if model.name.startswith(name)]
    assert [model.name for model in mine] == [f"{name} {number}" for number in range(5)], models
    assert [latest_version.version for latest_version in mine[3].latest_versions] == ["1"]
    assert mine[2].tags == {"n": "2"}
    assert [model.name for model in pages(client.list_registered_models)] == [
        model.name for model in models
    ]
    print("ok", mlflow.__version__)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
