"""Workflows, and the configuration of the updates of pinned versions, name what there is."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tests import long_tests
from tests.arch import project

MAKEFILE = (project.ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text())
    for path in sorted((project.ROOT / ".github/workflows").glob("*.yml"))
}
RENOVATE = json.loads((project.ROOT / "renovate.json").read_text())
BY_HAND = {"ECHARTS_VERSION"}
"""Its hash is pinned with it."""


def _commands(workflow: dict[str, Any]) -> list[str]:
    return [
        step["run"]
        for job in workflow["jobs"].values()
        for step in job.get("steps", ())
        if "run" in step
    ]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_runs_targets_that_there_are(name: str) -> None:
    for command in _commands(WORKFLOWS[name]):
        for target in re.findall(r"\bmake ([a-z-]+)", command):
            assert target in TARGETS, command


def test_all_that_a_change_must_pass_is_run_and_seen() -> None:
    commands = _commands(WORKFLOWS["checks.yml"])
    locally = re.findall(r"^make .+$", (project.ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {*locally, "make rehearse", "make invoke-events"} <= set(commands)
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert jobs["checks"]["uses"] == "./.github/workflows/checks.yml"
    assert jobs["release"]["needs"] == "checks"


def test_upgrades_rollbacks_and_the_checkup_are_rehearsed_for_every_change() -> None:
    """`make test`, which .ci/run runs, leaves out these alone; checks.yml runs all."""
    locally = (project.ROOT / ".ci/run").read_text()
    assert "\nmake test\n" in f"{locally}\n"
    text = (project.ROOT / "tests/rehearsal/conftest.py").read_text()
    left_out = set(re.findall(r'"(test_\w+\.py)"', text))
    assert left_out == {
        "test_builds.py",
        "test_kubeflow.py",
        "test_package.py",
        "test_releases.py",
        "test_sdks_in_aws.py",
        "test_signed_in.py",
        "test_versions.py",
        "test_wheel_deployment.py",
        "test_whole.py",
    }


def test_long_tests_are_there_and_run_each_night() -> None:
    for beginning in long_tests.LONG:
        path, _, name = beginning.partition("::")
        assert f"def {name.partition('[')[0] or 'test_'}" in (project.ROOT / path).read_text()
    assert "make test-long" in _commands(WORKFLOWS["nightly.yml"])
    assert WORKFLOWS["nightly.yml"][True]["schedule"]  # YAML reads the key "on" as a boolean


def test_the_upgrade_matrix_has_each_release_and_the_one_before() -> None:
    """Also what is about to be released."""
    changelog = (project.ROOT / "CHANGELOG.md").read_text()
    matches = re.findall(r"^## \[([\w.]+)\]", changelog, re.MULTILINE)
    releases = [name.lower() for name in reversed(matches)]
    if not changelog.partition("## [Unreleased]")[2].partition("\n## ")[0].strip():
        releases.remove("unreleased")
    matrix = (project.ROOT / "docs/operations.md").read_text().partition("## Upgrade")[2]
    rows = re.findall(r"^\| ([\w.]+) \| ([\w.]+) \| (?:yes|no)", matrix, re.MULTILINE)
    assert rows == list(pairwise(releases))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_the_least_rights_and_an_end(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    for job in WORKFLOWS[name]["jobs"].values():
        assert "uses" in job or job["timeout-minutes"] <= 90
    assert "secrets." not in json.dumps(WORKFLOWS[name])


def test_every_pinned_tool_is_updated() -> None:
    pinned = set(re.findall(r"^(\w+_VERSION)\s*:=", MAKEFILE, re.MULTILINE)) | {"NODE_WHEEL"}
    patterns = [
        # JavaScript's names of groups are Python's with a P.
        re.compile(text.replace("(?<", "(?P<"))
        for manager in RENOVATE["customManagers"]
        for text in manager["matchStrings"]
    ]
    results = set()
    for pattern in patterns:
        [match] = pattern.finditer(MAKEFILE)
        assert re.match(r"\d", match["currentValue"])
        results.add(match[0].split()[0])
    assert results == pinned - BY_HAND
