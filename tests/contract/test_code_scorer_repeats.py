"""What code has judged once is not judged and paid again by a later call of the runner; and two
registrations at once leave one version that judges automatically."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge_runner import code_scoring
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.repos.evaluation import jobs
from mlcore.scorer_cage import remote_cage
from mlcore.scorer_cage.answers import ScorerFeedback
from mlcore.scorer_cage.cage import Judgement
from tests.contract.code_scorer_calls import FLAG, code, register
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, assessments
from tests.contract.optimization_world import OptimizationWorld

Json = dict[str, Any]
DOLLARS = 0.001
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has cages")


class Cages:
    """Takes the place of the function of code scorers: refuses the calls after the first few."""

    def __init__(self, feedback: tuple[ScorerFeedback, ...], most: int) -> None:
        self.judged: Counter[str] = Counter()
        self.left = most
        self.lost = 0
        self._feedback = feedback

    def run(self, _scorer: CodeScorer, call: Mapping[str, Any], _seconds: float) -> Judgement:
        if self.left == 0:
            raise remote_cage.Throttled
        if self.lost:
            self.lost -= 1
            raise remote_cage.AnswerLost("lost", DOLLARS)
        self.left -= 1
        self.judged[json.dumps([call["inputs"], call["outputs"]])] += 1
        return Judgement(self._feedback, None, 1, 1, DOLLARS)


def test_a_scorer_that_returns_none_judges_each_trace_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FLAG, "true")
    world = World(store.api, monkeypatch)
    cages = Cages((), 1)
    monkeypatch.setattr(code_scoring, "_run", cages.run)
    traces = [world.trace(question, "a") for question in "pqr"]
    body = {
        "experiment_id": world.experiment,
        "trace_ids": traces,
        "serialized_scorers": [json.dumps(code("return None"))],
    }
    job_id = ask("POST", "mlflow/genai/evaluate/invoke", body).body["job_id"]
    for _ in traces:
        assert world.job(job_id)["status"] == "PENDING"
        world.work()
        cages.left = 1
    world.work()
    assert world.job(job_id)["status"] == "SUCCEEDED"
    assert (sorted(cages.judged.values()), list(map(assessments, traces))) == ([1, 1, 1], [[]] * 3)


def test_an_optimization_judges_each_answer_once_and_sums_the_costs(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(FLAG, "true")
    world = OptimizationWorld(store.api, monkeypatch, tmp_path)
    rated = (ScorerFeedback("quality", 0.5, "So so.", {}, "quality", None),)
    cages = Cages(rated, 1)
    cages.lost = 1
    monkeypatch.setattr(code_scoring, "_run", cages.run)
    register(world, code("return 0.5"))
    body = world.body("METAPROMPT")
    body["config"]["scorers"] = ["quality"]
    job_id = world.create(body)["job_id"]
    calls = 0
    while world.queue.waiting:
        cages.left = 2
        world.work()
        calls += 1
    assert world.get(job_id)["state"]["status"] == "JOB_STATUS_COMPLETED"
    assert calls > 2
    stored = jobs.find("default", job_id)
    assert stored is not None
    judged = sum(cages.judged.values())
    assert judged == len(world.predicted), "one judgement of each answer"
    assert stored.dollars == pytest.approx((judged + 1) * DOLLARS), "the lost answer is paid, too"
