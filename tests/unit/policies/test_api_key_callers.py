"""What a key with scopes may call, by what the route declares."""

from __future__ import annotations

import pytest

from mlcore.policies import route_authorization
from mlcore.policies.access import Access

RUNS, PREVIEW = "/2.0/mlflow/runs/search", "/2.0/preview/mlflow/runs/search"
JOBS = "/3.0/jobs/search"


@pytest.mark.parametrize(
    ("policy", "path", "reads", "is_open"),
    [
        ("shared_rules.anybody", RUNS, True, True),
        ("shared_rules.anybody", PREVIEW, True, True),
        ("shared_rules.anybody", RUNS, False, False),
        ("jobs.own_jobs", JOBS, True, False),
        ("shared_rules.anybody", "/2.0/mlflow/gateway-proxy", True, False),
    ],
)
@pytest.mark.parametrize("scope", ["read", "gateway:e-1", "experiment:7"])
def test_routes_that_require_nothing(
    policy: str, path: str, reads: bool, is_open: bool, scope: str
) -> None:
    rules = route_authorization.load_rules(policy, "", "", path, reads=reads)
    access = Access("ada", True, "default", key_id="1-a", scopes=(scope,))
    assert route_authorization.is_allowed(rules, access, None) is is_open


def test_key_without_scopes_lists_jobs_of_its_owner() -> None:
    rules = route_authorization.load_rules("jobs.own_jobs", "", "", JOBS, reads=True)
    assert route_authorization.is_allowed(
        rules, Access("ada", False, "default", key_id="1-a"), None
    )
