"""In whose name scorers judge new traces automatically, and who may let them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcore import ids
from mlcore.auth.permissions import Grant
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.environment import AUTHENTICATION
from mlcore.repos.evaluation import jobs, online_scorers, scorers
from mlcore.repos.users import grants, users
from tests.contract import lost_rights
from tests.contract.conftest import Store
from tests.contract.gateway_world import endpoint, model
from tests.contract.judges_world import assessments, judge
from tests.contract.online_scoring_members import NAME, Members

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Members:
    members = Members(store.api, monkeypatch, tmp_path)
    members.queue.waiting.clear()
    return members


def test_only_who_may_use_the_endpoint_turns_it_on(world: Members) -> None:
    for rate in (1.0, 0.001):
        assert world.set_rate("editor", rate) == 403
    assert world.setting() is None
    assert world.set_rate("editor", 0.0) == 200
    assert world.scored() == []
    assert world.set_rate("owner", 1.0) == 200
    assert world.set_rate("editor", 1.0) == 403
    setting = world.setting()
    assert setting is not None
    assert (setting.owner, setting.endpoint_id) == ("owner", world.e)
    for kind in ("trace", "assessment", "scorer_version"):
        grants.put(world.owner, "default", Grant(kind, "*", "DENY"))
        assert world.set_rate("owner", 0.5) == 403
        grants.delete(world.owner, "default", kind, "*")
    assert world.setting() == setting
    assert world.set_rate("editor", 0.0) == 200, "everybody who may edit it turns it off"


def test_settings_are_shown_to_those_who_may_read_the_scorers(world: Members) -> None:
    """Who may not read one of them gets none, as on MLflow's server."""
    assert world.set_rate("editor", 0.0) == 200
    setting = world.setting()
    assert setting is not None
    users.create("stranger", "", is_admin=False)
    shown = world.ask_settings

    status, body = shown("editor", setting.scorer_id, "unknown")
    assert status == 200
    assert [config["scorer_id"] for config in json.loads(body)["configs"]] == [setting.scorer_id]
    assert shown("stranger", "unknown") == (200, '{"configs":[]}')
    assert shown("stranger", "unknown", setting.scorer_id)[0] == 403
    grants.put(world.editor, "default", Grant("scorer", "*", "DENY"))
    assert shown("editor", setting.scorer_id)[0] == 403


def test_an_endpoint_with_the_id_of_another_as_its_name(world: Members) -> None:
    """Stored scorers name their endpoint by its id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(AUTHENTICATION, "none")
        own = endpoint(world.e, [model("own", "openai")])
    grants.put(world.editor, "default", Grant("gateway_endpoint", own, "MANAGE"))
    assert world.set_rate("editor", 1.0) == 403
    assert world.setting() is None


def test_it_judges_in_its_owners_name(world: Members) -> None:
    assert world.set_rate("owner", 1.0) == 200
    (job,) = world.scored()
    assert job.creator == "owner"
    assert world.work() == []
    assert [each["endpoint"] for each in world.model.asked] == ["e"]
    assert len(assessments(job.params["trace_ids"][0])) == 1


def test_a_version_with_another_endpoint(world: Members) -> None:
    """Needs the right to use it, and makes its author the owner."""
    assert world.register("editor", "f")[0] == 200, "while it does not judge automatically"
    assert world.register("owner", "e")[0] == 200
    assert world.set_rate("owner", 1.0) == 200
    for user in ("editor", "owner"):
        assert world.register(user, "f")[0] == 403
    assert world.register("editor", "e")[0] == 200, "the owner has confirmed this endpoint"
    (job,) = world.scored()
    assert (job.creator, job.params["scorer_version"]) == ("owner", 4)
    grants.put(world.editor, "default", Grant("gateway_endpoint", world.f, "USE"))
    assert world.register("editor", "f")[0] == 200
    setting = world.setting()
    assert setting is not None
    assert (setting.owner, setting.endpoint_id) == ("editor", world.f)
    assert world.scored()[-1].creator == "editor"
    assert world.work() == []
    assert [each["endpoint"] for each in world.model.asked] == ["e", "f"]


def test_a_version_that_nobody_confirmed_is_not_asked(world: Members) -> None:
    """One that is stored at the same moment as the settings; also if the owner might use it."""
    assert world.set_rate("owner", 1.0) == 200
    grants.put(world.owner, "default", Grant("gateway_endpoint", world.f, "USE"))
    setting = world.setting()
    assert setting is not None
    text = json.dumps(judge("Is {{ outputs }} fine?", NAME, model=f"gateway:/{world.f}"))
    version = ScorerVersion(world.experiment, NAME, 2, setting.scorer_id, text, ids.now_ms())
    scorers.create(version)
    assert world.scored() == []
    assert world.set_rate("owner", 1.0) == 200
    assert [job.creator for job in world.scored()] == ["owner"]


@pytest.mark.parametrize(
    "lose",
    [
        lost_rights.without_endpoint,
        lost_rights.without_experiment,
        lost_rights.denied_assessments,
        lost_rights.deleted,
        lost_rights.made_anew,
    ],
)
def test_an_owner_who_loses_a_right(world: Members, lose: Callable[[str, str], None]) -> None:
    """No job is made any more, and one that waits asks nothing. Somebody else may take it over."""
    assert world.set_rate("owner", 1.0) == 200
    (waiting,) = world.scored()
    lose(world.experiment, world.e)
    assert [job.job_id for job in world.scored()] == [waiting.job_id]
    assert world.work() == []
    job = jobs.find("default", waiting.job_id)
    assert job is not None
    assert job.status == "FAILED"
    assert "The user who created this job" in str(job.error_message)
    assert world.model.asked == []
    grants.put(world.editor, "default", Grant("gateway_endpoint", world.e, "USE"))
    assert world.set_rate("editor", 1.0) == 200
    assert world.scored()[-1].creator == "editor"


def test_settings_without_an_owner_go_on(world: Members) -> None:
    """Those of release 0.1.0, and those from before there were logins."""
    assert world.set_rate("owner", 1.0) == 200
    setting = world.setting()
    assert setting is not None
    online_scorers.save(setting._replace(owner=None, endpoint_id=None), setting)
    (job,) = world.scored()
    assert job.creator is None
    assert world.work() == []
    done = jobs.find("default", job.job_id)
    assert done is not None
    assert done.status == "SUCCEEDED"
    assert world.register("editor", "f")[0] == 403
