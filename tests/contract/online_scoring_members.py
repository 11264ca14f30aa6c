"""Users who let a scorer judge new traces automatically, and who may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import evaluation.app
import judge_runner.app
from judge_runner import online_scoring
from mlcore import ids
from mlcore.auth.permissions import Grant, scorer_pattern
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.evaluation.online_scorers import OnlineScorer
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.evaluation import jobs, online_scorers
from mlcore.repos.users import grants, users
from tests.contract import trace_calls
from tests.contract.gateway_world import endpoint, model
from tests.contract.judges_world import Context, World, judge
from tests.contract.logins import called_as, named
from tests.contract.sealing import seal_here

Json = dict[str, Any]
SCORERS = "/api/3.0/mlflow/scorers"
NAME = "quality"


class Members(World):
    """``owner`` may use the endpoint ``e`` and ``editor`` none; both may edit the experiment and
    its scorer, which asks ``e``. Nobody may use the endpoint ``f``."""

    def __init__(self, api: Any, patch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(api, patch)
        seal_here(patch, folder)
        patch.setenv(online_scoring.BUFFER_SECONDS, "0")
        self.now = ids.now_ms()
        patch.setattr(trace_calls, "START", (self.now + 30_000) * 1_000_000)
        self.e, self.f = (endpoint(name, [model(name, "openai")]) for name in "ef")
        for name in ("owner", "editor"):
            user = users.create(name, "", is_admin=False)
            grants.put(user, "default", Grant("experiment", self.experiment, "EDIT"))
            pattern = scorer_pattern(self.experiment, NAME)
            grants.put(user, "default", Grant("scorer", pattern, "EDIT"))
        self.owner, self.editor = users.get("owner"), users.get("editor")
        grants.put(self.owner, "default", Grant("gateway_endpoint", self.e, "USE"))
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(evaluation.app.RPCS)
        assert self.register("owner", "e")[0] == 200
        patch.setattr(ids, "now_ms", lambda: self.now)

    def call(self, user: str, method: str, path: str, body: Json) -> tuple[int, str]:
        sent = json.dumps({"experiment_id": self.experiment, "name": NAME, **body})
        return called_as(named(user), self._handler, method, f"{SCORERS}/{path}", sent)

    def register(self, user: str, asked: str) -> tuple[int, str]:
        data = judge("Is {{ outputs }} fine?", NAME, model=f"gateway:/{asked}")
        return self.call(user, "POST", "register", {"serialized_scorer": json.dumps(data)})

    def set_rate(self, user: str, rate: float) -> int:
        return self.call(user, "PUT", "online-config", {"sample_rate": rate})[0]

    def ask_settings(self, user: str, *scorer_ids: str) -> tuple[int, str]:
        query = urlencode({"scorer_ids": scorer_ids}, doseq=True)
        return called_as(named(user), self._handler, "GET", f"{SCORERS}/online-configs", query)

    def setting(self) -> OnlineScorer | None:
        return online_scorers.find("default", self.experiment, NAME)

    def scored(self) -> list[Job]:
        """The jobs after a trace that is new and a sweep a minute later."""
        self.trace("q", "a")
        self.now += 60_000
        judge_runner.app.handler({"source": "schedule"}, Context())
        self.now -= 60_000
        return list(jobs.of_workspace("default"))
