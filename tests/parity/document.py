"""Writes docs/parity.md from what a comparison found."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from mlcore.mlflow_version import MLFLOW_VERSION
from tests.engines import ROOT
from tests.parity.comparison import Difference, Surfaces
from tests.parity.known import NOT_SERVED
from tests.parity.operations import BEFORE_3_18, MEANT, Outcome

PATH: Final = ROOT / "docs" / "parity.md"


class Suite(NamedTuple):
    file: str
    passed: int
    failed: int


class Found(NamedTuple):
    """What one comparison found."""

    version: str
    surfaces: Surfaces
    differences: Sequence[Difference]
    outcomes: Sequence[Outcome]
    suites: Sequence[Suite]


def markdown(facts: Found) -> str:
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Found) -> Iterator[str]:
    yield f"""# Parity with MLflow {facts.version}

Written by `make parity` ({time.strftime("%Y-%m-%d", time.gmtime())}), which compares this product
with MLflow's own server {facts.version} on SQLite and with its client. `make parity VERSION=latest`
(or a version, or the path of a wheel) compares another release of MLflow, and prints what is new in
that release, what it changed and what mlflow-serverless lacks. `make parity` writes
`docs/parity.md` only for the version that the product follows ({MLFLOW_VERSION}), and exits with 1
if a difference has no reason. Each week `.github/workflows/parity.yml` compares MLflow's newest
release with this product ([how to follow a release](../CONTRIBUTING.md#follow-a-release)).

## Surfaces

| surface | names in MLflow {facts.version} | without a counterpart here | of these unexplained |
|---|---|---|---|"""
    lacking = [each for each in facts.differences if each.kind == "lacking"]
    for name, names in facts.surfaces.items():
        if name == "routes":
            unexplained = sum(not each.reason for each in lacking)
            yield f"| {name} | {len(names)} | {len(lacking)} | {unexplained} |"
        else:
            yield f"| {name} | {len(names)} | compared between releases | 0 |"
    counts = Counter(map(_kind, facts.outcomes))
    yield f"""
## Operations of the client

This table compares {len(facts.outcomes)} operations of MLflow's client (tracking, registry, traces,
prompts, evaluation, reviews, issues, skills, MCP servers, webhooks;
`tests/differential/operations`) with mlflow-serverless and with MLflow's own server:

| outcome | operations |
|---|---|"""
    for kind in ("equal", "stock failed", "on purpose", "unexplained"):
        yield f"| {_KINDS[kind]} | {counts[kind]} |"
    yield "\n| different on purpose | what MLflow's server does |\n|---|---|"
    reason = ""
    for operation, explanation in MEANT.items():
        reason = reason if explanation == "likewise" else explanation
        yield f"| `{operation}` | {reason} |"
    yield "\n| different from servers before 3.18 | what they do |\n|---|---|"
    for operation, explanation in BEFORE_3_18.items():
        yield f"| `{operation}` | {explanation} |"
    if facts.suites:
        yield """
## Suites

| file of `tests/differential` | passed | failed |
|---|---|---|"""
        for suite in facts.suites:
            yield f"| `{suite.file}` | {suite.passed} | {suite.failed} |"
        passed = sum(suite.passed for suite in facts.suites)
        yield f"| all | {passed} | {sum(suite.failed for suite in facts.suites)} |"
    yield """
## Routes that are not served

| routes | reason |
|---|---|"""
    yield from _not_served(lacking)
    yield """
## Answers that differ

| route | how |
|---|---|"""
    for route, deviation in deviations().items():
        yield f"| {route} | {deviation} |"


_KINDS: Final = {
    "equal": "equal",
    "stock failed": "MLflow's server answers 5xx, or quotes SQL in its message",
    "on purpose": "different on purpose",
    "unexplained": "unexplained",
}


def _kind(outcome: Outcome) -> str:
    if outcome.is_unexplained:
        return "unexplained"
    if outcome.is_equal:
        return "equal"
    return "stock failed" if outcome.has_stock_failed else "on purpose"


def _not_served(lacking: Sequence[Difference]) -> Iterator[str]:
    for _, reason in NOT_SERVED:
        routes = [f"`{each.name}`" for each in lacking if each.reason == reason]
        if routes:
            yield f"| {', '.join(routes)} | {reason} |"
    for each in lacking:
        if not each.reason:
            yield f"| `{each.name}` | **unexplained** |"


def deviations() -> Mapping[str, str]:
    """Returns where answers of routes differ from those of MLflow's server, by route."""
    facts = {}
    for domain in sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py")):
        app = import_module(f"{domain}.app")
        for route in (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ())):
            if route.deviation and not getattr(route, "twin_of", ""):
                facts[f"{route.method} `{route.path}`"] = route.deviation
    return facts
