"""Scorers that MLflow's server can run and this one cannot: they are registered and listed. Whoever
runs them gets 400 with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.code_scorer_calls import FLAG, code, register
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, builtin, judge

Json = dict[str, Any]
DIRECT = judge("Is {{ outputs }} fine?", model="openai:/gpt-4.1")
SAFETY = {**builtin("Safety"), "is_session_level_scorer": False}


def _library(module: str, metric: str) -> Json:
    return {
        "name": "quality",
        "third_party_scorer_data": {
            "module": f"mlflow.genai.scorers.{module}",
            "class": metric,
            "metric_name": metric,
            "model": "openai:/gpt-4.1",
            "kwargs": {"threshold": 0.5},
        },
    }


def _ensemble(*scorers: Json, function: Any = "majority_vote") -> Json:
    data = {"ensemble_fn": function, "scorers": list(scorers)}
    return {"name": "quality", "ensemble_scorer_data": data}


REFUSED: dict[str, tuple[Json, str]] = {
    "MemAlign": (
        {
            "name": "quality",
            "memory_augmented_judge_data": {
                "base_judge": DIRECT,
                "episodic_trace_ids": ["tr-1"],
                "semantic_memory": [{"guideline_text": "Be brief."}],
                "embedding_model": "openai:/text-embedding-3-small",
            },
        },
        "does not run judges with a memory (MemAlign)",
    ),
    "DeepEval": (_library("deepeval", "AnswerRelevancy"), "does not run scorers of other libr"),
    "Ragas": (_library("ragas", "Faithfulness"), "does not run scorers of other libraries"),
    "Phoenix": (_library("phoenix", "Hallucination"), "does not run scorers of other libraries"),
    "an ensemble of judges": (_ensemble(DIRECT, SAFETY), "does not run ensembles with judges"),
    "an ensemble of a judge and code": (
        _ensemble(DIRECT, code("return True")),
        "does not run ensembles with judges",
    ),
    "a judge in an ensemble of ensembles": (
        _ensemble(code("return True"), _ensemble(code("return True"), DIRECT)),
        "does not run ensembles with judges",
    ),
    "an ensemble of nothing": (_ensemble(), "does not run ensembles with judges"),
    "an unknown function": (
        _ensemble(code("return True"), function="median"),
        "unknown ensemble function 'median'. Available: ['agg_all', 'agg_any', 'majority_vote'",
    ),
    "no function": (
        _ensemble(code("return True"), function=["mean"]),
        "unknown ensemble function '['mean']'",
    ),
    "sessions and traces": (
        _ensemble(code("return True"), code("return 1", is_session_level_scorer=True)),
        "must be the same level: either all session-level or all single-turn",
    ),
    "a part without a signature": (
        _ensemble(code("return True"), code("return True", call_signature=None)),
        "field 'call_signature' must be a text that is not empty",
    ),
}


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(FLAG, "true")
    return World(store.api, monkeypatch)


@pytest.mark.parametrize("kind", REFUSED)
def test_who_runs_it_gets_400(world: World, kind: str) -> None:
    data, message = REFUSED[kind]
    version = register(world, data)
    trace = world.trace("q", "a")
    of_experiment = {"experiment_id": world.experiment}
    text = json.dumps(data)
    named = {"scorer_name": "quality", "scorer_version": version}
    evaluated = {**of_experiment, "trace_ids": [trace], "serialized_scorers": [text]}
    invoked = {**of_experiment, "trace_ids": [trace], "serialized_scorer": text}
    for path, body in (
        ("mlflow/scorer/invoke", invoked),
        ("mlflow/scorer/invoke", {**invoked, **named}),
        ("mlflow/genai/evaluate/invoke", evaluated),
        ("mlflow/genai/evaluate/invoke", {**evaluated, "scorer_versions": [version]}),
    ):
        answer = ask("POST", path, body)
        assert (answer.status, answer.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
        assert answer.body["message"].startswith("Failed to validate scorer: ")
        assert message in answer.body["message"]
    assert world.queue.waiting == []
