"""What was deleted in an experiment is listed, restored and removed, by those who may delete it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore import paging
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.api import JSON, Answer, Api, called
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.logins import called_as, named
from workspaces import app
from workspaces import messages as m
from workspaces import trash as service

TRASH = "/api/3.0/mlflow-serverless/trash"
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> Any:
    with artifacts_in(tmp_path):
        yield


def ask(verb: str, **fields: Any) -> Answer:
    if verb == "list":
        return called(app.handler, "GET", TRASH, None, JSON, **fields)
    return called(app.handler, "POST", f"{TRASH}/{verb}", fields)


def done(verb: str, **fields: Any) -> dict[str, Any]:
    answer = ask(verb, **fields)
    assert answer.status == 200, answer.body
    return answer.body


def ids(body: dict[str, Any]) -> set[str]:
    return {item["id"] for item in body["items"]}


def all_pages(experiment_id: str, size: int) -> list[str]:
    listed: list[str] = []
    token = ""
    while True:
        body = done("list", experiment_id=experiment_id, max_results=size, page_token=token)
        assert len(body["items"]) <= size
        listed += [item["id"] for item in body["items"]]
        token = body.get("next_page_token", "")
        if not token:
            return listed


class Trash:
    """An experiment, and what its trash must contain."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.experiment = api.new_experiment(f"trash {next(NUMBERS)}")
        self.of = {"experiment_id": self.experiment}
        self.stages: dict[str, str] = {}
        """Of runs and logged models."""
        self.models: set[str] = set()
        self.gone: set[str] = set()

    def fields(self, chosen: str) -> dict[str, Any]:
        return {**self.of, "model_ids" if chosen in self.models else "run_ids": [chosen]}

    def deleted(self) -> set[str]:
        return {name for name, stage in self.stages.items() if stage == DELETED}

    def step(self, name: str, number: int) -> None:
        getattr(self, name)(number)

    def chosen(self, number: int) -> str:
        if not self.stages:
            self.run(number)
        return list(self.stages)[number % len(self.stages)]

    def run(self, number: int) -> None:
        run = self.api.post("runs/create", experiment_id=self.experiment, start_time=number)
        self.stages[run["run"]["info"]["run_id"]] = ACTIVE

    def model(self, number: int) -> None:
        model = self.api.post("logged-models", experiment_id=self.experiment, name=f"m{number}")
        model_id = model["model"]["info"]["model_id"]
        self.stages[model_id] = ACTIVE
        self.models.add(model_id)

    def delete(self, number: int) -> None:
        chosen = self.chosen(number)
        if chosen not in self.models:
            self.api.post("runs/delete", run_id=chosen)
        elif self.stages[chosen] == ACTIVE:
            self.api.ask("DELETE", f"logged-models/{chosen}")
        self.stages[chosen] = DELETED

    def restore(self, number: int) -> None:
        chosen = self.chosen(number)
        assert ids(done("restore", **self.fields(chosen))) == {chosen} & self.deleted()
        self.stages[chosen] = ACTIVE

    def purge(self, number: int) -> None:
        chosen = self.chosen(number)
        for dry_run in (True, False):
            if self.stages[chosen] == ACTIVE:
                refused = ask("purge", dry_run=dry_run, **self.fields(chosen))
                assert refused.code == "INVALID_STATE"
            else:
                assert ids(done("purge", dry_run=dry_run, **self.fields(chosen))) == {chosen}
        if self.stages[chosen] == DELETED:
            self.gone.add(chosen)
            del self.stages[chosen]

    def purge_all(self, _: int) -> None:
        deleted = self.deleted()
        assert ids(done("purge", dry_run=True, **self.of)) == deleted
        assert ids(done("purge", dry_run=False, deleted_before=1, **self.of)) == set()
        assert ids(done("purge", dry_run=False, **self.of)) == deleted
        self.gone |= deleted
        self.stages = dict.fromkeys(self.stages.keys() - deleted, ACTIVE)

    def delete_experiment(self, number: int) -> None:
        """And restores it, with all its runs."""
        self.api.post("experiments/delete", experiment_id=self.experiment)
        assert ids(done("list", **self.of)) == {self.experiment}
        part = {**self.of, "run_ids": [f"{number}"]}
        assert ask("restore", **part).code == "INVALID_STATE"
        assert ask("purge", dry_run=True, **part).code == "INVALID_STATE"
        assert ids(done("restore", **self.of)) == {self.experiment}
        assert ids(done("restore", **self.of)) == set()
        self.stages.update(dict.fromkeys(self.stages.keys() - self.models, ACTIVE))


STEPS = (
    *("run", "model", "delete", "delete", "restore", "purge", "purge_all"),
    "delete_experiment",
)


def test_any_order_of_steps_leaves_what_it_must(store: Store) -> None:
    @settings(max_examples=8 * EXAMPLES, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=14))
    def check(steps: list[tuple[str, int]]) -> None:
        trash = Trash(store.api)
        for name, number in steps:
            trash.step(name, number)
        for size in (1, 2, 100):
            assert sorted(all_pages(trash.experiment, size)) == sorted(trash.deleted())
        text = json.dumps(store.items(), default=str)
        assert [item_id for item_id in trash.gone if item_id in text] == []

    check()


def test_a_whole_experiment_goes_and_its_name_is_free(store: Store) -> None:
    api = store.api
    experiment = api.new_experiment("whole")
    api.post("runs/create", experiment_id=experiment, start_time=1)
    of = {"experiment_id": experiment}
    # Of an active experiment with nothing in the trash nothing goes.
    assert done("purge", dry_run=False, **of)["items"] == []
    api.post("experiments/delete", experiment_id=experiment)
    assert ids(done("purge", dry_run=True, **of)) == {experiment}
    assert api.get("experiments/get", experiment_id=experiment)
    answer = done("purge", dry_run=False, **of)
    assert (ids(answer), answer["finished"], answer["files_kept"]) == ({experiment}, True, [])
    assert ask("purge", dry_run=False, **of).status == 404
    assert api.new_experiment("whole") != experiment


def test_a_long_removal_says_that_it_is_not_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = store.api
    experiment = api.new_experiment("long")
    runs = [
        api.post("runs/create", experiment_id=experiment, start_time=n)["run"]["info"]["run_id"]
        for n in range(5)
    ]
    for run in runs:
        api.post("runs/delete", run_id=run)
    of = {"experiment_id": experiment}
    monkeypatch.setattr(m, "MOST_TRASHED", 2)
    assert done("purge", dry_run=True, **of)["finished"] is False
    results: set[str] = set()
    while True:
        body = done("purge", dry_run=False, **of)
        results |= ids(body)
        if body["finished"]:
            break
    assert results == set(runs)
    api.post("experiments/delete", experiment_id=experiment)
    monkeypatch.setattr(service, "WORK_SECONDS", -1.0)
    api_answer = done("purge", dry_run=False, **of)
    assert (api_answer["items"], api_answer["finished"]) == ([], False)


def test_mistakes_are_the_callers(store: Store) -> None:
    api = store.api
    experiment, other = api.new_experiment("mine"), api.new_experiment("another")
    run = api.post("runs/create", experiment_id=other, start_time=1)["run"]["info"]["run_id"]
    api.post("runs/delete", run_id=run)
    of = {"experiment_id": experiment}
    # A run of another experiment is none of this one.
    assert ask("restore", run_ids=[run], **of).status == 404
    assert done("purge", run_ids=[run], dry_run=False, **of)["items"] == []
    assert ids(done("list", experiment_id=other)) == {run}
    for verb, fields in (
        ("purge", of),
        ("purge", {**of, "dry_run": "yes"}),
        ("purge", {**of, "dry_run": True, "run_ids": "x"}),
        ("purge", {**of, "dry_run": True, "deleted_before": "soon"}),
        ("purge", {"dry_run": True}),
        ("restore", {**of, "run_ids": [1]}),
        ("restore", {**of, "run_ids": ["x"] * (m.MOST_TRASHED + 1)}),
        ("list", {}),
        ("list", {**of, "max_results": 0}),
        ("list", {**of, "max_results": m.MOST_TRASHED + 1}),
        ("list", {**of, "page_token": "x"}),
    ):
        assert ask(verb, **fields).status == 400, (verb, fields)
    query = ["default", experiment]
    for position in (["run"], ["nothing", ""], ["run", 1], ["run", "x" * 2000], ["run", "R", "R"]):
        answer = ask("list", **of, page_token=paging.token(position, query))
        assert answer.status == 400, position
    for kind in ("run", "logged_model"):
        for key in ("", "A", "\U0010ffff" * 9, "Z"):
            answer = ask("list", **of, page_token=paging.token([kind, key], query))
            assert (answer.status, answer.body.get("items")) == (200, []), (kind, key)
    assert ask("list", experiment_id="99999").status == 404


@pytest.mark.parametrize("level", ["", "READ", "EDIT", "MANAGE"])
def test_only_those_who_may_delete_it_see_or_touch_the_trash(
    store: Store, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """The others learn nothing: the answer about what exists and about what does not is one."""
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    api = store.api
    experiment = api.new_experiment("SECRET-NAME")
    run = api.post("runs/create", experiment_id=experiment, run_name="SECRET-RUN", start_time=1)
    run_id = run["run"]["info"]["run_id"]
    api.post("runs/delete", run_id=run_id)
    users.create("ben", "", is_admin=False)
    if level:
        grants.put(users.get("ben"), "default", Grant(EXPERIMENT, experiment, level))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(app.RPCS)

    def as_ben(verb: str, text: str) -> tuple[int, str]:
        if verb == "list":
            return called_as(named("ben"), handler, "GET", TRASH, text)
        return called_as(named("ben"), handler, "POST", f"{TRASH}/{verb}", text)

    before = store.items()
    requests = []
    for experiment_id in (experiment, f"0{experiment}", f" {experiment}", "98765"):
        requests.append(("list", f"experiment_id={experiment_id}"))
        for more in ({}, {"run_ids": [run_id]}, {"model_ids": ["m-1"]}):
            requests.append(("restore", json.dumps({"experiment_id": experiment_id, **more})))
            requests.append(
                ("purge", json.dumps({"experiment_id": experiment_id, "dry_run": False, **more}))
            )
    # One body that says two things; the last one counts, for the policy as for the function.
    twice = f'{{"experiment_id":"0","experiment_id":"{experiment}","dry_run":false}}'
    requests += [("purge", twice), ("list", f"experiment_id=0&experiment_id={experiment}")]
    if level != "MANAGE":
        answers = {as_ben(verb, text) for verb, text in requests}
        assert not any("SECRET" in body for _, body in answers)
        assert {status for status, _ in answers} <= {400, 403, 404}
        assert store.items() == before
        for verb, real in requests:
            unknown = real.replace(experiment, "98765")
            if real.count(experiment) == 1 and "run_ids" not in real:
                assert as_ben(verb, real)[0] == as_ben(verb, unknown)[0]
        return
    assert "SECRET-RUN" in as_ben("list", f"experiment_id={experiment}")[1]
    status, body = as_ben(
        "purge", json.dumps({"experiment_id": experiment, "run_ids": [run_id], "dry_run": False})
    )
    assert (status, json.loads(body)["items"][0]["id"]) == (200, run_id)
    assert as_ben("list", "experiment_id=98765")[0] in {403, 404}
