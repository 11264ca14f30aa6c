"""Creates things with MLflow's client, and what the server must know of them afterwards; breaks
nothing itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import mlflow
from mlflow import MlflowClient
from mlflow.entities.issue import IssueSeverity
from mlflow.genai import issues

SOURCE = "https://git.example.com/a/skills.git"


class Created(NamedTuple):
    kind: str
    name: str
    is_answered: bool
    """Whether the client returned, instead of raising."""


class Calls:
    """One user's calls; each creates something with a name of its own."""

    def __init__(self, url: str, prefix: str, seed: int) -> None:
        mlflow.set_tracking_uri(url)
        self._client = MlflowClient(url, url)
        self._prefix, self._random = prefix, random.Random(seed)
        self.experiment = self._client.create_experiment(f"{prefix} home")
        self._client.create_registered_model(f"{prefix}-model")
        self.created: list[Created] = []
        self.failures: list[str] = []
        self._makers: dict[str, Callable[[str], Any]] = {
            "experiment": self._client.create_experiment,
            "run": lambda name: self._client.create_run(self.experiment, run_name=name),
            "registered model": self._client.create_registered_model,
            "model version": lambda name: self._client.create_model_version(
                f"{prefix}-model", "s3://bucket/x", description=name
            ),
            "logged model": lambda name: self._client.create_logged_model(self.experiment, name),
            "issue": lambda name: issues.create_issue(
                name, severity=IssueSeverity.LOW, description="d", experiment_id=self.experiment
            ),
            "skill version": lambda name: self._client.create_skill_version(
                name=f"{prefix}-skill", source=SOURCE, digest=f"{int(name.rpartition('-')[2]):064x}"
            ),
        }

    def make(self, count: int) -> None:
        """Creates so many things, of kinds by chance."""
        for number in range(count):
            kind = self._random.choice(list(self._makers))
            name = f"{self._prefix}-{number}"
            try:
                self._makers[kind](name)
            except Exception as error:  # a client raises what it likes
                self.failures.append(f"{kind}: {error}")
                self.created.append(Created(kind, name, is_answered=False))
            else:
                self.created.append(Created(kind, name, is_answered=True))

    def counts(self) -> dict[tuple[str, str], int]:
        """How often the server knows each thing that was to be created, by kind and name."""
        client, counts = self._client, dict.fromkeys([each[:2] for each in self.created], 0)
        versions = client.search_model_versions(f"name = '{self._prefix}-model'", 10_000)
        results = [
            *(
                ("run", run.info.run_name)
                for run in client.search_runs([self.experiment], max_results=5000)
            ),
            *(
                ("experiment", experiment.name)
                for experiment in client.search_experiments(max_results=5000)
            ),
            *(
                ("registered model", registered_model.name)
                for registered_model in client.search_registered_models(max_results=900)
            ),
            *(("model version", version.description) for version in versions),
            *(
                ("issue", issue.name)
                for issue in _pages(issues.search_issues, experiment_id=self.experiment)
            ),
            *(
                ("logged model", model.name)
                for model in _pages(client.search_logged_models, experiment_ids=[self.experiment])
            ),
            *(
                ("skill version", f"{self._prefix}-{int(version.digest, 16)}")
                for version in _pages(client.search_skill_versions, name=f"{self._prefix}-skill")
            ),
        ]
        for entity in results:
            if entity in counts:
                counts[entity] += 1
        return counts


def _pages(search: Callable[..., Any], **given: Any) -> list[Any]:
    results, token = [], None
    while True:
        page = search(**given, page_token=token)
        results += page
        token = page.token
        if not token:
            return results
