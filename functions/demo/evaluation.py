"""Creates the demo's evaluation: a dataset of questions, and a run that judges the traces."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from demo import demo_runs
from demo.conversations import TURNS, Turn, trace_name
from mlcore import reserved_tags
from mlcore.http.api_client import ApiClient

DATASET: Final = "mlflow-demo-questions"
RUN: Final = "demo-evaluation"
_RUN_TYPE: Final = "genai_evaluate"
"""The type by which MLflow's client marks the runs of ``mlflow.genai.evaluate``."""
_WORDS: Final = 12
"""The judge ``is_brief`` passes answers of at most this many words."""


def make(client: ApiClient, experiment_id: str) -> None:
    """Creates the demo's evaluation dataset, and the evaluation run with the judgements of the
    demo's traces. The traces must exist."""
    dataset_id = _make_dataset(client, experiment_id)
    run = demo_runs.find_or_create(client, experiment_id, RUN, {reserved_tags.RUN_TYPE: _RUN_TYPE})
    run_id = run["run_id"]
    trace_ids = [trace_name(experiment_id, number) for number in range(len(TURNS))]
    judged = list(zip(trace_ids, TURNS, strict=True))
    client.run_in_parallel(
        [partial(_judge, client, trace_id, turn, run_id) for trace_id, turn in judged]
    )
    client.post("/2.0/mlflow/traces/link-to-run", trace_ids=trace_ids, run_id=run_id)
    source = {"name": DATASET, "digest": dataset_id[:8], "source_type": "mlflow_genai"}
    client.post(
        "/2.0/mlflow/runs/log-inputs",
        run_id=run_id,
        datasets=[{"dataset": {**source, "source": json.dumps({"dataset_id": dataset_id})}}],
    )
    verdicts = [_verdicts(turn) for turn in TURNS]
    metrics = {
        f"{name}/mean": sum(passed[name][0] for passed in verdicts) / len(verdicts)
        for name in verdicts[0]
    }
    demo_runs.end(client, run, metrics)


def remove(client: ApiClient, experiment_id: str) -> None:
    """Deletes the demo's dataset, which the deletion of its experiment would not remove. The demo's
    evaluation run is deleted with its experiment."""
    dataset_id = _dataset(client, experiment_id)
    if dataset_id is not None:
        client.remove("DELETE", f"/3.0/mlflow/datasets/{dataset_id}")


def _make_dataset(client: ApiClient, experiment_id: str) -> str:
    dataset_id = _dataset(client, experiment_id)
    if dataset_id is None:
        made = client.post(
            "/3.0/mlflow/datasets/create",
            name=DATASET,
            experiment_ids=[experiment_id],
            tags=json.dumps({reserved_tags.DEMO: "true"}),
        )
        dataset_id = str(made["dataset"]["dataset_id"])
    records = [
        {"inputs": {"question": turn.question}, "expectations": {"expected_response": turn.answer}}
        for turn in TURNS
        if turn.is_grounded
    ]
    # Repeating this has no further effect: records with equal inputs are merged.
    client.post(f"/3.0/mlflow/datasets/{dataset_id}/records", records=json.dumps(records))
    return dataset_id


def _dataset(client: ApiClient, experiment_id: str) -> str | None:
    answer = client.post(
        "/3.0/mlflow/datasets/search",
        experiment_ids=[experiment_id],
        filter_string=f"name = '{DATASET}'",
    )
    listed = answer.get("datasets", ())
    return listed[0]["dataset_id"] if listed else None


def _verdicts(turn: Turn) -> dict[str, tuple[bool, str]]:
    """Returns what each judge says about an answer, and why."""
    words = len(turn.answer.split())
    return {
        "is_supported": (
            turn.is_grounded,
            "The passages say so." if turn.is_grounded else "No passage says so.",
        ),
        "is_brief": (words <= _WORDS, f"The answer has {words} words."),
    }


def _judge(client: ApiClient, trace_id: str, turn: Turn, run_id: str) -> None:
    """Logs the judges' assessments of a trace that an interrupted call has not logged yet."""
    trace_info = client.get(f"/3.0/mlflow/traces/{trace_id}")["trace"]["trace_info"]
    names = {each["assessment_name"] for each in trace_info.get("assessments", ())}
    for name, (passed, rationale) in _verdicts(turn).items():
        if name not in names:
            assessment: dict[str, Any] = {
                "trace_id": trace_id,
                "assessment_name": name,
                "source": {"source_type": "LLM_JUDGE", "source_id": f"mlflow-demo-{name}"},
                "feedback": {"value": passed},
                "rationale": rationale,
                "metadata": {reserved_tags.ASSESSMENT_RUN: run_id},
            }
            client.post(f"/3.0/mlflow/traces/{trace_id}/assessments", assessment=assessment)
