"""The contexts of datasets that a search shows are those in which runs use them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from tests.contract.api import pairs
from tests.contract.conftest import Store, examples
from tests.contract.kubeflow_api import KubeflowApi

CONTEXT = "mlflow.data.context"

_input = st.tuples(st.sampled_from("de"), st.sampled_from([None, "train", "eval"]))
_request = st.tuples(st.integers(0, 1), st.lists(_input, max_size=3))


def _given(name: str, context: str | None) -> dict[str, Any]:
    dataset = {"name": name, "digest": "1", "source_type": "local", "source": "s"}
    return {"dataset": dataset, "tags": pairs({} if context is None else {CONTEXT: context})}


def test_a_search_shows_data_sets_that_kubeflow_logged(shared_store: Store) -> None:
    api, kubeflow = shared_store.api, KubeflowApi()
    experiment_id = api.new_experiment(f"contexts {uuid4()}")
    run_id = api.new_run(experiment_id, tags=[{"key": "mlflow.runName", "value": "r"}])
    api.post("runs/log-inputs", run_id=run_id, datasets=[_given("d", "train")])
    run = kubeflow.get("experiment_run", name="r", parentResourceId=experiment_id)
    for name in ("d", "e", "e"):
        fields = {"artifactType": "dataset-artifact", "name": name, "digest": "1", "source": "s"}
        kubeflow.post(f"experiment_runs/{run['id']}/artifacts", **fields)
    found = api.post("experiments/search-datasets", experiment_ids=[experiment_id])
    shown = [(each["name"], each.get("context")) for each in found["dataset_summaries"]]
    assert sorted(shown) == [("d", "train"), ("e", None)]


@examples(25)
@given(st.lists(_request, max_size=6))
def test_only_contexts_that_runs_have(
    shared_store: Store, requests: list[tuple[int, list[tuple[str, str | None]]]]
) -> None:
    """MLflow keeps a run's first tags of a dataset; later ones must not appear anywhere."""
    api = shared_store.api
    experiment_id = api.new_experiment(f"contexts {uuid4()}")
    run_ids = [api.new_run(experiment_id) for _ in range(2)]
    for number, inputs in requests:
        datasets = [_given(*each) for each in inputs]
        api.post("runs/log-inputs", run_id=run_ids[number], datasets=datasets)
    used = set()
    for run_id in run_ids:
        for entry in api.run(run_id)["inputs"].get("dataset_inputs", ()):
            tags = {tag["key"]: tag["value"] for tag in entry.get("tags", ())}
            used.add((entry["dataset"]["name"], tags.get(CONTEXT)))
    found = api.post("experiments/search-datasets", experiment_ids=[experiment_id])
    shown = [(each["name"], each.get("context")) for each in found.get("dataset_summaries", ())]
    assert sorted(shown, key=str) == sorted(used, key=str)
