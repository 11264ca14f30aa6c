"""All that MLflow's client reads of a server, in a form in which two servers can be compared."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import urllib3

from tests.e2e import old_server

pytest.importorskip("mlflow")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mlflow
    from mlflow import entities

ALL = entities.ViewType.ALL
READERS = 4
PAGE = 500
FILES = "api/2.0/mlflow-artifacts/artifacts"


def fill(url: str, *, runs: int, models: int, traces: int, points: int = old_server.POINTS) -> None:
    """Adds to :func:`old_server.fill` prompts with aliases, a scorer that stands alone, evaluation
    datasets and more assessments."""
    old_server.fill(url, runs=runs, models=models, traces=traces, points=points)
    client = mlflow.MlflowClient(url)
    trace_id = f"tr-{1:032x}"
    source = entities.AssessmentSource("HUMAN", "ann")
    old = entities.Feedback("good", True, source=source, rationale="é", metadata={"k": "v"})
    made = client._tracing_client.log_assessment(trace_id, old)
    new = entities.Feedback("good", 0.5, source=source, overrides=made.assessment_id)
    client._tracing_client.log_assessment(trace_id, new)
    expected = entities.Expectation("answer", {"x": [1, "ü"]}, source=source)
    client._tracing_client.log_assessment(trace_id, expected)
    client.register_prompt("greet", "Hello {{name}}", commit_message="first", tags={"a": "b"})
    client.register_prompt("greet", "Grüß dich, {{name}}")
    client.set_prompt_alias("greet", "prod", 2)
    dataset = client.create_dataset("questions", experiment_id=["1"], tags={"of": "me"})
    store = client._tracking_client.store
    records = [
        {"inputs": {"q": "é"}, "expectations": {"a": 1}, "tags": {"k": "v"}},
        {"inputs": {"q": "2"}, "outputs": {"text": [1, None]}},
    ]
    store.upsert_dataset_records(dataset.dataset_id, records)
    judge = {
        "name": "polite",
        "instructions_judge_pydantic_data": {
            "model": "openai:/gpt-4o",
            "instructions": "{{ outputs }}",
        },
    }
    for _ in range(2):
        scorer = {"experiment_id": "1", "name": "polite", "serialized_scorer": json.dumps(judge)}
        answer = urllib3.request(
            "POST", f"{url}/api/3.0/mlflow/scorers/register", json=scorer, timeout=60
        )
        assert answer.status == 200, answer.data


def plain(entity: Any) -> Any:
    """An entity's fields, with those of entities in it."""
    if isinstance(entity, list | tuple):
        return sorted((plain(item) for item in entity), key=repr)
    if isinstance(entity, dict):
        return {key: plain(value) for key, value in entity.items()}
    if hasattr(entity, "to_dictionary"):
        return plain(entity.to_dictionary())
    if hasattr(entity, "to_dict"):
        return plain(entity.to_dict())
    if hasattr(entity, "__iter__") and not isinstance(entity, str):
        return plain(dict(entity))
    return repr(entity)


def told(url: str) -> dict[str, Any]:
    """What a server shows of each entity, by kind and id."""
    client = mlflow.MlflowClient(url)
    results: dict[str, Any] = {}
    experiments = list(_pages(client.search_experiments, view_type=ALL, max_results=PAGE))
    ids = [experiment.experiment_id for experiment in experiments]
    results.update(
        {f"experiment {experiment.experiment_id}": plain(experiment) for experiment in experiments}
    )
    runs = list(_pages(client.search_runs, ids, run_view_type=ALL, max_results=PAGE))
    results.update({f"run {run.info.run_id}": plain(run) for run in runs})
    with ThreadPoolExecutor(READERS) as pool:
        pairs = [(run.info.run_id, key) for run in runs for key in run.data.metrics]
        series = pool.map(lambda pair: plain(client.get_metric_history(*pair)), pairs)
        for (run_id, key), points in zip(pairs, series, strict=True):
            results[f"history {run_id} {key}"] = points
        kept = [run for run in runs if run.info.artifact_uri.startswith("mlflow-artifacts:")]
        listed = pool.map(lambda run: dict(_files(url, run.info.artifact_uri)), kept)
        for run, files in zip(kept, listed, strict=True):
            results[f"files {run.info.run_id}"] = files
    for model in _pages(client.search_logged_models, ids, max_results=50):
        results[f"logged model {model.model_id}"] = plain(model)
    results.update(_registry(client))
    # A search for traces takes experiments that exist.
    active = [
        experiment.experiment_id
        for experiment in experiments
        if experiment.lifecycle_stage == "active"
    ]
    for trace in _pages(client.search_traces, locations=active, max_results=PAGE):
        results[f"trace {trace.info.trace_id}"] = plain(trace)
    results.update(_evaluation(url, active))
    return results


def _registry(client: Any) -> Iterator[tuple[str, Any]]:
    for model in _pages(client.search_registered_models, max_results=PAGE):
        yield f"registered model {model.name}", plain(model)
        for alias, version in model.aliases.items():
            there = client.get_model_version_by_alias(model.name, alias)
            assert there.version == version
    for version in _pages(client.search_model_versions, max_results=PAGE):
        yield f"version {version.version} of {version.name}", plain(version)
    for prompt in _pages(client.search_prompts, max_results=PAGE):
        yield f"prompt {prompt.name}", plain(vars(prompt))
        for version in client.search_prompt_versions(prompt.name):
            read = (version.template, version.commit_message, plain(version.tags))
            yield f"prompt {prompt.name}, version {version.version}", read


def _evaluation(url: str, experiment_ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    api = f"{url}/api/3.0/mlflow"
    search = {"experiment_ids": list(experiment_ids)}
    listed = urllib3.request("POST", f"{api}/datasets/search", json=search, timeout=60).json()
    for dataset in listed.get("datasets", ()):
        dataset["tags"] = json.loads(dataset["tags"])
        where = f"{api}/datasets/{dataset['dataset_id']}/records"
        records = json.loads(urllib3.request("GET", where, timeout=60).json()["records"])
        for record in records:  # whose ids follow from their inputs after an import
            del record["dataset_record_id"]
        yield f"dataset {dataset['dataset_id']}", (plain(dataset), plain(records))
    for experiment_id in experiment_ids:
        where = f"{api}/scorers/list?experiment_id={experiment_id}"
        answer = urllib3.request("GET", where, timeout=60).json()
        for scorer in answer.get("scorers", ()):
            if "gateway:/" not in scorer["serialized_scorer"]:
                yield f"scorer {experiment_id}/{scorer['scorer_name']}", plain(scorer)


def _files(url: str, location: str, below: str = "") -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each file that the server's proxy keeps at a location."""
    root = location.removeprefix("mlflow-artifacts:").strip("/")
    folder = f"{root}/{below}" if below else root
    listed = urllib3.request("GET", f"{url}/{FILES}", fields={"path": folder}, timeout=60).json()
    for entry in listed.get("files", ()):
        path = f"{below}/{entry['path']}" if below else entry["path"]
        if entry.get("is_dir"):
            yield from _files(url, location, path)
        else:
            answer = urllib3.request("GET", f"{url}/{FILES}/{root}/{path}", timeout=60)
            assert answer.status == 200, answer.data
            yield path, answer.data


def _pages(search: Any, *arguments: Any, **options: Any) -> Iterable[Any]:
    token = None
    while True:
        page = search(*arguments, **options, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
