"""Passes of the schedule that archive traces: which ones, how far, and who may ask for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import server_info.app
from indexer.lifecycle import trace_archival
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue
from mlcore.repos.experiments import experiments, tags
from mlcore.repos.traces import archival, traces
from mlcore.repos.workspaces import workspaces
from tests.contract.api import called
from tests.contract.archived_traces import (
    HOUR,
    NOW,
    RETENTION,
    aged,
    archiving,
    files,
    is_archived,
    tagged,
    tags_of,
    tick,
)
from tests.contract.conftest import Store, enable_workspaces, forget
from tests.contract.logins import ADMIN, Logins, named

__all__ = ["archiving", "files"]

pytestmark = pytest.mark.usefixtures("files")


def test_nothing_is_archived_unless_somebody_turns_it_on(store: Store) -> None:
    trace = aged("0", 50 * HOUR)
    tagged(store.api, "0", NOW, {})
    before = store.items()
    tick()
    assert store.items() == before
    assert not is_archived(trace)
    assert (
        "effective_trace_archival_retention"
        not in store.api.get("experiments/get", experiment_id="0")["experiment"]
    )


def test_retention_of_server_workspace_and_experiment(
    store: Store, archiving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = store.api
    enable_workspaces(monkeypatch)
    plain, short, long, allowed = (
        api.new_experiment(name) for name in ("plain", "short", "long", "allowed")
    )
    monkeypatch.setenv("TRACE_ARCHIVAL_LONG_RETENTION", f" {allowed} ,")
    tagged(api, short, RETENTION, {"type": "duration", "value": "2h"})
    for experiment_id in (long, allowed):
        tagged(api, experiment_id, RETENTION, {"type": "duration", "value": "3d"})
    ages = (1 * HOUR, 5 * HOUR, 30 * HOUR, 80 * HOUR)
    made = {
        experiment_id: [aged(experiment_id, age) for age in ages]
        for experiment_id in (plain, short, long, allowed)
    }

    def archived() -> dict[str, list[bool]]:
        return {name: list(map(is_archived, made[name])) for name in made}

    def shown() -> list[str]:
        forget()
        return [
            api.get("experiments/get", experiment_id=name)["experiment"][
                "effective_trace_archival_retention"
            ]
            for name in made
        ]

    assert shown() == ["1d", "2h", "1d", "3d"]
    tick()
    assert archived() == {
        plain: [False, False, True, True],
        short: [False, True, True, True],
        long: [False, False, True, True],
        allowed: [False, False, False, True],
    }
    workspaces.change(DEFAULT_WORKSPACE, {"trace_archival_retention": "4h"})
    assert shown() == ["4h", "2h", "4h", "3d"]
    tick()
    assert archived() == {
        plain: [False, True, True, True],
        short: [False, True, True, True],
        long: [False, True, True, True],
        allowed: [False, False, False, True],
    }
    workspaces.change(
        DEFAULT_WORKSPACE,
        {"trace_archival_retention": "", "trace_archival_location": "s3://elsewhere/x"},
    )
    tagged(api, plain, NOW, {})
    tick()
    assert not is_archived(made[plain][0])
    assert NOW in tags_of(api, plain)


def test_a_request_to_archive_now(store: Store, archiving: None) -> None:
    api = store.api
    mine, other = api.new_experiment("mine"), api.new_experiment("other")
    young, older, beside = aged(mine, HOUR), aged(mine, 5 * HOUR), aged(other, HOUR)
    tagged(api, mine, NOW, {"older_than": "2h"})
    tick()
    assert (is_archived(young), is_archived(older), is_archived(beside)) == (False, True, False)
    assert NOW not in tags_of(api, mine)
    # A trace that came late is met by the next request, though older ones were passed.
    late = aged(mine, 6 * HOUR)
    tagged(api, mine, NOW, {})
    tick()
    assert is_archived(young)
    assert is_archived(late)
    assert not is_archived(beside)
    assert tags_of(api, mine) == {}


def test_a_pass_continues_where_the_time_was_over(
    store: Store, archiving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archival, "PAGE_ITEMS", 2)
    monkeypatch.setattr(trace_archival, "WORK_SECONDS", 0.5)
    made = [aged("0", (90 - number) * HOUR) for number in range(5)]
    tagged(store.api, "0", NOW, {})
    counts = []
    for _ in range(4):
        # The time is over after the first page.
        clock = iter([0.0, 0.0, 1.0])
        monkeypatch.setattr(trace_archival, "monotonic", partial(next, clock, 1.0))
        trace_archival.run()
        counts.append(sum(map(is_archived, made)))
    assert counts[0] == 2
    assert counts == sorted(counts)
    assert counts[-1] == 5


@pytest.mark.parametrize(
    "error", [InvalidParameterValue("The experiment is full."), OverflowError("unforeseen")]
)
def test_a_trace_that_fails_holds_up_no_other(
    store: Store, archiving: None, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failing, fine = aged("0", 60 * HOUR), aged("0", 50 * HOUR)
    elsewhere = aged(store.api.new_experiment("elsewhere"), 50 * HOUR)
    write = traces.write

    def refused(trace: traces.StoredTrace, decide: Any) -> traces.StoredTrace | None:
        if trace.trace_id == f"tr-{failing}":
            raise error
        return write(trace, decide)

    monkeypatch.setattr(traces, "write", refused)
    tagged(store.api, "0", NOW, {})
    tick()
    assert (is_archived(failing), is_archived(fine), is_archived(elsewhere)) == (False, True, True)
    assert NOW in tags_of(store.api, "0")
    monkeypatch.setattr(traces, "write", write)
    tick()
    assert is_archived(failing)
    assert NOW not in tags_of(store.api, "0")


def test_a_walk_starts_again_after_a_week(
    store: Store, archiving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = aged("0", 50 * HOUR)
    tick()
    assert is_archived(first)
    late = aged("0", 60 * HOUR)
    tick()
    assert not is_archived(late)
    monkeypatch.setattr(trace_archival, "AGAIN_MS", -1)
    tick()
    assert is_archived(late)


def test_a_new_request_is_not_taken_for_the_old_one(
    store: Store, archiving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = aged("0", 5 * HOUR)
    tagged(store.api, "0", NOW, {"older_than": "1d"})
    original = archival.oldest_first

    def meanwhile(*arguments: Any) -> Iterator[Any]:
        tagged(store.api, "0", NOW, {"older_than": "1h"})
        return original(*arguments)

    monkeypatch.setattr(archival, "oldest_first", meanwhile)
    tick()
    assert not is_archived(trace)
    assert tags_of(store.api, "0")[NOW] == '{"older_than": "1h"}'
    monkeypatch.setattr(archival, "oldest_first", original)
    tick()
    assert is_archived(trace)
    assert NOW not in tags_of(store.api, "0")


@pytest.mark.parametrize("value", ["[]", '{"older_than": 5}', "{", '{"older_than": "9" }', "null"])
def test_malformed_requests_are_left_alone(store: Store, archiving: None, value: str) -> None:
    trace = aged("0", HOUR)
    refused = store.api.ask(
        "POST", "experiments/set-experiment-tag", experiment_id="0", key=NOW, value=value
    )
    assert refused.status == 400
    # As an import may have stored it.
    tags.set_tag(experiments.get("0", DEFAULT_WORKSPACE), NOW, value)
    tagged_by = {"type": "duration", "value": "99999999999999999999999999999999d"}
    tags.set_tag(experiments.get("0", DEFAULT_WORKSPACE), RETENTION, json.dumps(tagged_by))
    tick()
    assert not is_archived(trace)


def test_server_info(archiving: None) -> None:
    answer = called(server_info.app.handler, "GET", "/api/3.0/mlflow/server-info")
    assert answer.body["trace_archival_enabled"] is True


def test_who_may_ask(store: Store, archiving: None) -> None:
    """Only who may change an experiment asks for its traces; nobody learns from the answer whether
    an experiment exists."""
    logins, api = Logins(), store.api
    mine = api.new_experiment("theirs")
    trace = aged(mine, HOUR)
    account = {"username": "stranger", "password": "password12345"}
    assert logins.ask(ADMIN, "POST", "2.0/mlflow/users/create", **account).status == 200
    for experiment_id in (mine, "987654"):
        for spelled in (
            {"experiment_id": experiment_id, "key": NOW, "value": "{}"},
            {"experimentId": experiment_id, "key": NOW, "value": "{}"},
        ):
            path = "2.0/mlflow/experiments/set-experiment-tag"
            refused = logins.ask(named("stranger"), "POST", path, **spelled)
            assert refused.status == 403, refused
            assert refused.body["text"] == "Permission denied"
    tick()
    assert not is_archived(trace)
    assert (
        logins.ask(
            ADMIN,
            "POST",
            "2.0/mlflow/experiments/set-experiment-tag",
            experiment_id=mine,
            key=NOW,
            value="{}",
        ).status
        == 200
    )
    tick()
    assert is_archived(trace)
