"""Users with some of the rights that the optimization of a prompt needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import evaluation.app
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.logins import called_as, named
from tests.contract.optimization_world import JOBS, OptimizationWorld


class Member:
    """A user who has only the given grants."""

    def __init__(self, name: str, patch: pytest.MonkeyPatch, *given: Grant) -> None:
        self._name = name
        user = users.create(name, "", is_admin=False)
        for grant in given:
            grants.put(user, "default", grant)
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(evaluation.app.RPCS)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status, and the body as JSON or, of most refusals, as text."""
        text = json.dumps(body or {}) if method != "GET" else ""
        status, answered = called_as(
            named(self._name), self._handler, method, f"{JOBS}{path}", text
        )
        return status, json.loads(answered) if answered.startswith("{") else answered


def needed(world: OptimizationWorld) -> dict[str, Grant]:
    return {
        "experiment": Grant("experiment", world.experiment, "EDIT"),
        "prompt": Grant("prompt", "qa", "EDIT"),
        "endpoint": Grant("gateway_endpoint", world.endpoint_id, "USE"),
    }
