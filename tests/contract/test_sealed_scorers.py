"""No source runs under a version's name but the one that was registered: not another version's, not
one that was written past the registration, and not one that nobody let judge new traces."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from judge_runner import scorer_source_check
from mlcore import errors, ids
from mlcore.auth.permissions import Grant
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.evaluation.jobs import NOBODY, OPTIMIZE_PROMPT
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.repos.evaluation import jobs, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.users import grants
from tests.contract.code_scorer_calls import FLAG, code, refused, register
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, assessments
from tests.contract.online_scoring_members import NAME, Members

Json = dict[str, Any]
NAMED = {"scorer_name": "quality", "scorer_version": 1}
FIRST, SECOND = code("return 'first'"), code("return 'second'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has cages")


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(FLAG, "true")
    return World(store.api, monkeypatch)


@pytest.fixture
def members(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Members:
    monkeypatch.setenv(FLAG, "true")
    made = Members(store.api, monkeypatch, tmp_path)
    made.queue.waiting.clear()
    return made


def _delete(world: World, **fields: Any) -> None:
    body = {"experiment_id": world.experiment, "name": "quality", **fields}
    assert ask("DELETE", "mlflow/scorers/delete", body).status == 200


def _ended(world: World, job_id: str, trace: str) -> str:
    assert world.work() == []
    job = world.job(job_id)
    assert (job["status"], assessments(trace)) == ("FAILED", []), job
    return str(job["error_message"])


def _rewrite(experiment: str, **texts: str | None) -> None:
    """Changes the item of the first version, as a faulty tool might that writes to the table."""
    raw = table.get(keys.scorer_version(experiment, "quality", 1))
    assert raw is not None
    kept = {name: value for name, value in raw.items() if name not in texts}
    assert len(kept) == len(raw) - len(texts)
    table.put({**kept, **{name: {"S": text} for name, text in texts.items() if text is not None}})


@pytest.mark.parametrize("again", [FIRST, SECOND], ids=["the same source", "another source"])
@pytest.mark.parametrize("whole", [True, False], ids=["the scorer", "its latest version"])
def test_a_version_that_was_registered_again(world: World, again: Json, whole: bool) -> None:
    trace = world.trace("q", "a")
    number = 1 if whole else 2
    if not whole:
        register(world, SECOND)
    assert register(world, FIRST) == number
    (job_id,) = world.invoke(FIRST, [trace], scorer_name="quality", scorer_version=number)
    _delete(world, **({} if whole else {"version": number}))
    assert register(world, again) == number
    assert "deleted or replaced" in _ended(world, job_id, trace)


def test_a_version_that_was_written_past_its_registration(world: World) -> None:
    trace = world.trace("q", "a")
    register(world, FIRST)
    (waiting,) = world.invoke(FIRST, [trace], **NAMED)
    _rewrite(world.experiment, serialized_scorer=json.dumps(SECOND))
    assert "not what was registered" in refused(world, FIRST, trace, **NAMED)
    evaluation = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "serialized_scorers": [json.dumps(FIRST)],
        "scorer_versions": [1],
    }
    assert ask("POST", "mlflow/genai/evaluate/invoke", evaluation).status == 400
    assert "deleted or replaced" in _ended(world, waiting, trace)


def test_a_version_that_was_copied_to_another_experiment(world: World) -> None:
    trace = world.trace("q", "a")
    other = str(world.api.post("experiments/create", name="other")["experiment_id"])
    body = {"experiment_id": other, "name": "quality", "serialized_scorer": json.dumps(FIRST)}
    assert ask("POST", "mlflow/scorers/register", body).status == 200
    raw = table.get(keys.scorer_version(other, "quality", 1))
    assert raw is not None
    pk = keys.scorer_version(world.experiment, "quality", 1).pk
    table.put({**raw, "PK": {"S": pk}, "experiment_id": {"S": world.experiment}})
    assert "not what was registered" in refused(world, FIRST, trace, **NAMED)


@pytest.mark.parametrize(
    "changed",
    [
        {"serialized_scorer": json.dumps(SECOND)},
        {"sealed_sources": None},
        {"sealed_sources": [["quality", 2, "0" * 64]]},
        {"sealed_sources": [["quality", 1, "0" * 64]]},
        {"sealed_sources": [["other", 1, "0" * 64]]},
    ],
)
def test_a_job_with_another_source_than_its_version(world: World, changed: Json) -> None:
    trace = world.trace("q", "a")
    register(world, FIRST)
    (job_id,) = world.invoke(FIRST, [trace], **NAMED)
    jobs.change("default", job_id, lambda job: job._replace(params={**job.params, **changed}))
    assert "source was not run" in _ended(world, job_id, trace)


def test_a_version_of_release_0_1_0_has_no_seal(world: World) -> None:
    """It runs as long as nobody replaces it."""
    trace = world.trace("q", "a")
    register(world, FIRST)
    _rewrite(world.experiment, seal=None)
    assert world.done(FIRST, [trace], **NAMED)["status"] == "SUCCEEDED"
    (job_id,) = world.invoke(FIRST, [trace], **NAMED)
    _rewrite(world.experiment, serialized_scorer=json.dumps(SECOND))
    assert world.work() == []
    assert world.job(job_id)["status"] == "FAILED"


def test_a_job_of_hours_ends_when_its_version_is_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(world, FIRST)
    (job_id,) = world.invoke(FIRST, [world.trace("q", "a")], **NAMED)
    job = jobs.find("default", job_id)
    assert job is not None
    (check,) = scorer_source_check.of_job(job, [parse_scorer(FIRST)], [json.dumps(FIRST)])
    assert check is not None
    _delete(world)
    check.check()
    now = time.monotonic()
    later = now + scorer_source_check.RECHECK_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(errors.InvalidParameterValue, match="deleted or replaced"):
        check.check()


def test_an_optimization_runs_no_replaced_source(world: World) -> None:
    register(world, FIRST)
    (experiment,) = experiments.find_existing([world.experiment], "default")
    version = scorers.find(experiment, "quality", 1)
    assert version is not None
    texts = [json.dumps({"name": "j"}), json.dumps(FIRST)]
    params = {
        "experiment_id": world.experiment,
        "serialized_scorers": texts,
        "sealed_sources": [None, list(version.source())],
    }
    job = jobs.new("default", OPTIMIZE_PROMPT, params, 1, NOBODY)
    parsed = [parse_scorer(FIRST)] * 2
    checks = scorer_source_check.of_job(job, parsed, texts)
    assert [check is None for check in checks] == [True, False]
    _delete(world)
    register(world, FIRST)
    with pytest.raises(errors.InvalidParameterValue, match="deleted or replaced"):
        scorer_source_check.of_job(job, parsed, texts)


def _register_code(members: Members, user: str, source: str = "return True") -> int:
    text = json.dumps(code(source, name=NAME))
    return members.call(user, "POST", "register", {"serialized_scorer": text})[0]


def test_who_registers_code_for_new_traces_confirms_it(members: Members) -> None:
    """Code that replaces a judge, or other code, does not run in the name of another user."""
    assert members.set_rate("owner", 1.0) == 200
    for kind in ("assessment", "trace", "scorer_version"):
        grants.put(members.editor, "default", Grant(kind, "*", "DENY"))
        assert _register_code(members, "editor") == 403
        grants.delete(members.editor, "default", kind, "*")
    (job,) = members.scored()
    assert (job.creator, job.params.get("sealed_sources")) == ("owner", None), "still the judge"
    assert _register_code(members, "editor") == 200
    setting = members.setting()
    assert setting is not None
    assert (setting.owner, setting.endpoint_id) == ("editor", None)
    assert [job.creator for job in members.scored()][-1] == "editor"
    members.work()
    assert _register_code(members, "owner", "return False") == 200
    setting = members.setting()
    assert setting is not None
    assert setting.owner == "owner"
    assert members.register("editor", "e")[0] == 403, "a judge is confirmed, too"


def test_code_that_nobody_confirmed_does_not_run(members: Members) -> None:
    """As a version that is stored at the same moment as the settings. The one that was confirmed
    runs when it is the latest again."""
    assert _register_code(members, "owner") == 200
    assert members.set_rate("owner", 1.0) == 200
    assert len(members.scored()) == 1
    setting = members.setting()
    assert setting is not None
    text = json.dumps(code("return False", name=NAME))
    scorers.create(
        ScorerVersion(members.experiment, NAME, 3, setting.scorer_id, text, ids.now_ms())
    )
    assert len(members.scored()) == 1
    for kind in ("scorer", "scorer_version"):
        grants.put(members.owner, "default", Grant(kind, "*", "MANAGE"))
    assert members.call("owner", "DELETE", "delete", {"version": 3})[0] == 200
    assert len(members.scored()) == 2
    assert {job.params["scorer_version"] for job in members.scored()} == {2}
