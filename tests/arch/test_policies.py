"""What every route demands of its callers, as its line says."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pytest

from mlcore.http.routes import Route, only_reads
from mlcore.policies import route_authorization
from mlcore.policies.shared_rules import public
from tests.arch.routes import ROUTES


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_names_rules_that_there_are(route: Route) -> None:
    rules = route_authorization.load_rules(route.policy, route.follow, route.hides)
    assert callable(rules.policy)
    assert (rules.redaction is not None) == bool(route.hides)
    assert (rules.follow is not None) == bool(route.follow)


def test_a_misspelt_rule_ends_the_start() -> None:
    for named in (("runs.update_rum", "", ""), ("rums.x", "", ""), ("runs.create", "", "rum")):
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            route_authorization.load_rules(*named)


def test_posts_that_only_read() -> None:
    """Keys that may only read may call these, and the audit leaves them out."""
    paths = {
        route.path.replace("/preview/", "/")
        for route in ROUTES
        if only_reads(route) and route.method != "GET"
    }
    assert paths == {
        "/2.0/mlflow/artifacts/presigned-download-url",
        "/2.0/mlflow/experiments/search",
        "/2.0/mlflow/experiments/search-datasets",
        "/2.0/mlflow/logged-models/search",
        "/2.0/mlflow/registered-models/get-latest-versions",
        "/2.0/mlflow/runs/search",
        "/3.0/jobs/search",
        "/3.0/mlflow-serverless/activity",
        "/3.0/mlflow-serverless/sql",
        "/3.0/mlflow/datasets/search",
        "/3.0/mlflow/issues/search",
        "/3.0/mlflow/prompt-optimization/jobs/search",
        "/3.0/mlflow/traces/batchGetInfos",
        "/3.0/mlflow/traces/calculate-filter-correlation",
        "/3.0/mlflow/traces/metrics",
        "/3.0/mlflow/traces/search",
        "/3.0/mlflow/ui-telemetry",
        "/graphql",
        "/mcp",
    }


def test_only_public_paths_are_public() -> None:
    declared = {
        prefix + route.path
        for route in ROUTES
        if route_authorization.load_rules(route.policy, "", "").policy is public
        for prefix in (("/api", "/ajax-api") if hasattr(route, "message") else ("",))
    }
    assert declared == route_authorization.PUBLIC_PATHS


def test_every_policy_is_of_a_route() -> None:
    """What no route names any more goes."""
    named = {rule for route in ROUTES for rule in (route.policy, route.follow) if rule}
    hidden = {route.hides for route in ROUTES if route.hides}
    for module in {rule.partition(".")[0] for rule in named}:
        source = importlib.import_module(f"mlcore.policies.{module}")
        for name, value in vars(source).items():
            if getattr(value, "__qualname__", "").endswith(".<locals>.policy"):
                assert f"{module}.{name}" in named or not _is_own(source, name), name
    assert hidden


def _is_own(source: ModuleType, name: str) -> bool:
    return f"\n{name} = on_" in inspect.getsource(source)
