"""Jobs of scorers that are code have the time that all judgements of their request may take."""

from __future__ import annotations

import math
import os

import pytest

from mlcore.entities.evaluation.jobs import MAX_SECONDS
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.repos.evaluation import job_runs, jobs
from tests.contract.code_scorer_calls import FLAG, code
from tests.contract.conftest import Store
from tests.contract.judges_world import World


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(FLAG, "true")
    return World(store.api, monkeypatch)


def test_jobs_have_the_time_that_their_judgements_may_take(world: World) -> None:
    traces = [world.trace("q", "a") for _ in range(17)]
    (job_id,) = world.invoke(code("return True", timeout=200), traces)
    stored = jobs.find("default", job_id)
    assert stored is not None
    assert stored.timeout is not None
    assert 3600 + 3 * 200 <= stored.timeout <= 3600 + 9 * 200
    assert job_runs.timeout(0, 1e9) == MAX_SECONDS


def test_jobs_of_one_request_have_the_time_of_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share the five runners in AWS."""
    traces = [world.trace("q", "a", session=f"s{number}") for number in range(12)]
    data = code("return 1", "(session)", timeout=200, is_session_level_scorer=True)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "evaluation")
    job_ids = world.invoke(data, traces)
    stored = [jobs.find("default", job_id) for job_id in job_ids]
    assert [job.timeout for job in stored if job] == [3600 + 3 * 200] * 12
    scorer = parse_scorer(data)
    assert job_runs.code_seconds([scorer], [100, 100, 1]) == 13 * 200
    assert job_runs.code_seconds([scorer], [100] * 20) == 4 * 13 * 200
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME")
    processors = max(2, os.cpu_count() or 1)
    expected = math.ceil(2000 / min(processors, 40)) * 200
    assert job_runs.code_seconds([scorer], [100] * 20) == expected
