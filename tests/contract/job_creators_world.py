"""A member who may create every kind of job, and what is left of a job that was refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import evaluation.app
from mlcore import artifacts
from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.permissions import Grant
from mlcore.entities.evaluation.jobs import Job
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.evaluation import jobs
from mlcore.repos.users import grants, users
from tests.contract import gateway_world
from tests.contract.evaluation_calls import sent
from tests.contract.issue_detection_world import CATEGORIES, Detective
from tests.contract.judges_world import assessments, judge
from tests.contract.logins import called_as, named
from tests.contract.optimization_world import JOBS, OptimizationWorld
from tests.doubles.providers import Provider

Json = dict[str, Any]
AJAX: Final = "/ajax-api/3.0/mlflow"
SCORER: Final = "quality"


class JobWorld(OptimizationWorld):
    """A member who may create every kind of job, with a trace, a scorer and a saved key."""

    def __init__(
        self, api: Any, patch: pytest.MonkeyPatch, folder: Path, provider: Provider
    ) -> None:
        super().__init__(api, patch, folder)
        patch.setattr(artifacts, "store", lambda: Folder(folder))
        self.provider = provider
        self.scorer = judge("Is {{ outputs }} fine?", "another name")
        fields = {"experiment_id": self.experiment, "name": SCORER}
        sent("POST", "scorers/register", {**fields, "serialized_scorer": json.dumps(self.scorer)})
        self.traces = [self.trace("q", "WRONG"), self.trace("q", "fine")]
        self.key = gateway_world.saved_key(f"{provider.url}/v1", "the key")
        self.member = users.create("member", "", is_admin=False)
        self.granted = {
            "experiment": Grant("experiment", self.experiment, "EDIT"),
            "endpoint": Grant("gateway_endpoint", self.endpoint_id, "USE"),
            "prompt": Grant("prompt", "qa", "EDIT"),
            "key": Grant("gateway_secret", self.key, "USE"),
        }
        for grant in self.granted.values():
            grants.put(self.member, "default", grant)
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(evaluation.app.RPCS)
        detecting = Detective().say
        optimizing = self.model.said

        def say(chat: Json) -> Any:
            words = chat["messages"][0]["content"]
            is_other = words.startswith(("You improve", "You judge")) or "briefly" in str(chat)
            return (
                optimizing(chat) if is_other or "response_format" not in chat else detecting(chat)
            )

        self.model.said = say

    def create_as_member(self, kind: Kind) -> tuple[int, str]:
        return self.ask(named("member"), "POST", kind.path, kind.body(self))

    def ask(
        self, caller: Json, method: str, path: str, body: Json | None = None
    ) -> tuple[int, str]:
        sent = "" if method == "GET" else json.dumps(body or {})
        return called_as(caller, self._handler, method, path, sent)

    def created(self, kind: Kind) -> Job:
        status, text = self.create_as_member(kind)
        assert status == 200, text
        return self.stored()

    def stored(self) -> Job:
        """The newest job."""
        return list(jobs.of_workspace("default"))[-1]

    def calls(self) -> int:
        """Calls of models so far."""
        return len(self.model.asked) + len(self.provider.asked)

    def revoke(self, name: str) -> None:
        grant = self.granted[name]
        grants.delete(self.member, "default", grant.resource_type, grant.resource_pattern)

    def deny(self, resource_type: str, pattern: str = "*") -> None:
        grants.put(self.member, "default", Grant(resource_type, pattern, "DENY"))


class Kind(NamedTuple):
    """A kind of job: its route, a request, the grants and the types of resources that it needs."""

    path: str
    body: Callable[[JobWorld], Json]
    needs: tuple[str, ...]
    denied_by: tuple[str, ...]


def _invocation(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "serialized_scorer": json.dumps(world.scorer),
        "trace_ids": world.traces,
        "log_assessments": True,
    }


def _registered_invocation(world: JobWorld) -> Json:
    return {**_invocation(world), "scorer_name": SCORER, "scorer_version": 1}


def _evaluation(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "serialized_scorers": [json.dumps({**world.scorer, "name": SCORER})],
        "scorer_versions": [1],
        "trace_ids": world.traces,
    }


def _detection(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "trace_ids": world.traces,
        "categories": CATEGORIES,
        "provider": "openai",
        "endpoint_name": "e",
    }


def _detection_with_key(world: JobWorld) -> Json:
    key = {"endpoint_name": "", "model": "gpt-4o-mini", "secret_id": world.key}
    return {**_detection(world), **key}


KINDS: Final = {
    "judge": Kind(
        f"{AJAX}/scorer/invoke",
        _invocation,
        ("experiment", "endpoint"),
        ("trace", "assessment", "scorer_version"),
    ),
    "registered judge": Kind(
        f"{AJAX}/scorer/invoke",
        _registered_invocation,
        ("experiment", "endpoint"),
        ("trace", "assessment", "scorer", "scorer_version"),
    ),
    "evaluation": Kind(
        f"{AJAX}/genai/evaluate/invoke",
        _evaluation,
        ("experiment", "endpoint"),
        ("run", "scorer", "scorer_version"),
    ),
    "detection": Kind(
        f"{AJAX}/issues/invoke",
        _detection,
        ("experiment", "endpoint"),
        ("run", "trace", "assessment"),
    ),
    "detection with a key": Kind(
        f"{AJAX}/issues/invoke",
        _detection_with_key,
        ("experiment", "key"),
        ("run", "trace", "assessment"),
    ),
    "optimization": Kind(
        JOBS,
        lambda world: world.body("METAPROMPT"),
        ("experiment", "endpoint", "prompt"),
        ("run", "prompt_version", "scorer_version"),
    ),
}


def holds_nothing(world: JobWorld, job_id: str, calls: int = 0) -> None:
    """Checks that a job has failed, and has asked and written nothing."""
    job = jobs.find("default", job_id)
    assert job is not None
    assert (job.status, job.result) == ("FAILED", None), job
    assert "The user who created this job" in str(job.error_message)
    assert world.calls() == calls
    assert world.queue.waiting == []
    assert [assessments(trace) for trace in world.traces] == [[], []]
    assert len(world.versions()) == 1
    if run_id := job.params.get("run_id"):
        run = world.run(run_id)
        assert run["info"]["status"] == "FAILED"
        assert "metrics" not in run["data"]
