"""Prompts to optimize, on the real engine: a model that answers well when the prompt tells it to,
a judge that compares, and a model that rewrites prompts as a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import evaluation.app
from tests.contract import gateway_world
from tests.contract.api import Answer, Api, called
from tests.contract.evaluation_calls import new_dataset, upsert
from tests.contract.judges_world import World
from tests.contract.sealing import seal_here

Json = dict[str, Any]
JOBS: Final = "/api/3.0/mlflow/prompt-optimization/jobs"
POOR: Final = "Say something about {{ question }}"
GOOD: Final = "Answer briefly: {{ question }}"
CAPITALS: Final = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Peru": "Lima"}


class OptimizationWorld(World):
    """The model behind the endpoint ``e`` answers right if the prompt says "briefly"."""

    def __init__(self, api: Api, patch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(api, patch)
        seal_here(patch, folder)
        gateway_world.allow_local(patch)
        model_id = gateway_world.model("m", "openai", "http://127.0.0.1:9/v1")
        self.endpoint_id = gateway_world.endpoint("e", [model_id])
        self.proposals: list[Any] = [GOOD]
        """What the rewriting model answers, one after the other; the last one again and again."""
        self.predicted: list[str] = []
        """The filled prompts, as the model was asked them."""
        self.proposed = 0
        self.model.said = self._say
        self.before: Callable[[], None] = lambda: None
        """Is called before each answer of the model."""
        self.prompt("qa", POOR)
        self.dataset = new_dataset(experiment_ids=[self.experiment])
        records = [
            {"inputs": {"question": country}, "outputs": capital}
            for country, capital in CAPITALS.items()
        ]
        assert upsert(self.dataset, *records).status == 200

    def _say(self, chat: Json) -> Any:
        self.before()
        first, last = (chat["messages"][at]["content"] for at in (0, -1))
        if first.startswith("You improve"):
            answer = self.proposals[min(self.proposed, len(self.proposals) - 1)]
            self.proposed += 1
            return {"prompt": answer} if isinstance(answer, str) else answer
        if first.startswith("You judge"):
            right = any(f'"{capital}"' in last.partition("expected")[0] for capital in _names())
            return {"result": "yes" if right else "no", "rationale": "Compared."}
        self.predicted.append(last)
        country = last.rpartition(" ")[2]
        return CAPITALS.get(country, "?") if "briefly" in last else "It depends."

    def prompt(self, name: str, text: str, model_config: Any = "gateway", **tags: str) -> int:
        """Registers a version of a prompt; its number."""
        marked = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]
        self.api.ask("POST", "registered-models/create", name=name, tags=marked)
        config = (
            {"provider": "gateway", "model_name": "e"}
            if model_config == "gateway"
            else model_config
        )
        prompt_tags = {
            "mlflow.prompt.text": text,
            "_mlflow_prompt_type": "text",
            **({} if config is None else {"_mlflow_prompt_model_config": json.dumps(config)}),
            **tags,
        }
        made = self.api.post(
            "model-versions/create",
            name=name,
            source="prompt-template",
            tags=[*marked, *({"key": key, "value": value} for key, value in prompt_tags.items())],
        )
        return int(made["model_version"]["version"])

    def body(self, kind: str = "GEPA", **config: Any) -> Json:
        """A request to create a job; ``config`` replaces what the optimizer gets."""
        return {
            "experiment_id": self.experiment,
            "source_prompt_uri": "prompts:/qa/1",
            "config": {
                "optimizer_type": f"OPTIMIZER_TYPE_{kind}",
                "dataset_id": self.dataset,
                "scorers": ["Equivalence"],
                "optimizer_config_json": json.dumps({"reflection_model": "gateway:/e", **config}),
            },
        }

    def create(self, body: Json) -> Json:
        answer = ask("POST", "", body)
        assert answer.status == 200, answer
        return dict(answer.body["job"])

    def get(self, job_id: str) -> Json:
        answer = ask("GET", f"/{job_id}")
        assert answer.status == 200, answer
        return dict(answer.body["job"])

    def optimized(self, body: Json) -> Json:
        """The job after it was done by one call."""
        job = self.create(body)
        assert self.work() == []
        assert self.queue.waiting == []
        return self.get(job["job_id"])

    def run(self, run_id: str) -> Json:
        return dict(self.api.get("runs/get", run_id=run_id)["run"])

    def versions(self, name: str = "qa") -> list[Json]:
        """Text and number of each version, oldest first."""
        wanted = f"name='{name}' AND tag.`mlflow.prompt.is_prompt` = 'true'"
        model_versions = self.api.get("model-versions/search", filter=wanted)["model_versions"]
        return sorted(model_versions, key=lambda version: int(version["version"]))


def _names() -> list[str]:
    return list(CAPITALS.values())


def ask(method: str, path: str, body: Any = None, **query: Any) -> Answer:
    """``path`` is below that of the jobs."""
    return called(evaluation.app.handler, method, f"{JOBS}{path}", body, **query)
