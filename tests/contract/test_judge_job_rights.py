"""Jobs of judges that name what belongs to others: traces, and scorers that are denied."""

from __future__ import annotations

import json
from typing import Any

import pytest

import evaluation.app
from mlcore.auth.permissions import Grant, scorer_pattern
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.judges_world import TRACE, World, ask, assessments, judge
from tests.contract.logins import called_as, named

Json = dict[str, Any]
BOTH = "Is {{ outputs }} a fine answer to {{ inputs }}?"


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def test_traces_of_others_are_not_judged(world: World) -> None:
    other = world.api.post("experiments/create", name="other")["experiment_id"]
    trace = world.trace("q", "a")
    body = {
        "experiment_id": other,
        "serialized_scorer": json.dumps(judge(BOTH)),
        "trace_ids": [trace],
    }
    answer = ask("POST", "mlflow/scorer/invoke", body)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    assert answer.body["message"] == "Not all requested traces could be accessed."
    job = world.done(judge(BOTH), ["tr-none"])
    assert job["error_message"] == "Traces not found: ['tr-none']"


@pytest.mark.parametrize("is_evaluation", [False, True])
def test_a_trace_that_is_made_elsewhere_after_the_request(
    world: World, is_evaluation: bool
) -> None:
    """Its id was free when the job was created, so only the job can see whose it is."""
    own, foreign = world.trace("q", "a"), f"tr-{TRACE.format(2)}"
    body = {
        "experiment_id": world.experiment,
        "trace_ids": [own, foreign],
        "serialized_scorers": [json.dumps(judge(BOTH))],
    }
    if is_evaluation:
        job_id = ask("POST", "mlflow/genai/evaluate/invoke", body).body["job_id"]
    else:
        [job_id] = world.invoke(judge(BOTH), [own, foreign])
    mine = world.experiment
    world.experiment = str(world.api.post("experiments/create", name="others")["experiment_id"])
    assert world.trace("the secret question", "a") == foreign
    world.experiment = mine
    assert world.work() == []
    job = world.job(job_id)
    assert (job["status"], job["result"]) == ("FAILED", f"Traces not found: ['{foreign}']")
    assert world.model.asked == []
    assert assessments(foreign) == []


@pytest.mark.parametrize("denied", [("scorer", ""), ("scorer_version", "*")])
def test_nobody_evaluates_with_a_scorer_that_is_denied_to_them(
    world: World, monkeypatch: pytest.MonkeyPatch, denied: tuple[str, str]
) -> None:
    trace = world.trace("q", "a")
    user = users.create("member", "", is_admin=False)
    grants.put(user, "default", Grant("experiment", world.experiment, "MANAGE"))
    kind, pattern = denied
    pattern = pattern or scorer_pattern(world.experiment, "the judge")
    grants.put(user, "default", Grant(kind, pattern, "DENY"))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(evaluation.app.RPCS)

    def status(text: str, version: Any) -> int:
        body = {
            "experiment_id": world.experiment,
            "trace_ids": [trace],
            "serialized_scorers": [text],
            "scorer_versions": [version],
        }
        path = "/ajax-api/3.0/mlflow/genai/evaluate/invoke"
        return called_as(named("member"), handler, "POST", path, json.dumps(body))[0]

    for name in ("the judge", "the\\u0020judge"):
        for version in (1, 99, 0, False, "1"):
            assert status(f'{{"name": "{name}"}}', version) == 403
    # A name that cannot be read cannot be checked.
    for text in ("no JSON", "[]", "{}", '{"name": 7}', '{"name": ""}', '{"name": null}'):
        assert status(text, 1) == 403
    assert status('{"name": "the judge"}', None) == 400, "an inline scorer is only looked at"
    assert world.queue.waiting == []
