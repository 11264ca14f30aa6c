"""Nobody reads or changes what is another user's through MLflow's routes, however an id is spelled,
in any mode of authentication."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from mlcore import artifacts
from mlcore.environment import AUTHENTICATION
from mlcore.repos.users import users
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_users import MODES, caller_of
from tests.contract.owned_world import DOMAINS, HIDDEN, SECRET, Call, OwnedWorld
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import routes_of
from tests.contract.sealing import seal_here
from tests.contract.write_requests import CLOCK
from tests.e2e.workspace_calls import GRAPHQL

Worlds = tuple[OwnedWorld, OwnedWorld]

CASES: Final = [
    (mode, domain)
    for number, domain in enumerate(DOMAINS)
    for mode in (MODES if EXAMPLES > 1 else (MODES[number % len(MODES)],))
]
"""Each domain in one mode of authentication; in every mode where there is time."""


@pytest.fixture(params=MODES)
def worlds(
    request: pytest.FixtureRequest, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Worlds:
    """The owner's, and the other user's; neither may read what was not granted."""
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    monkeypatch.setenv("IAM_ADMINISTRATORS", "arn:admin")
    monkeypatch.setenv(AUTHENTICATION, request.param)
    artifacts.store.cache_clear()
    seal_here(monkeypatch, tmp_path)
    users.create("arn:admin" if request.param == "iam" else "admin", "", is_admin=True)
    made = []
    for name in ("amy", "ben"):
        caller = caller_of(request.param, name)
        users.ensure(caller["iam"]["userArn"] if request.param == "iam" else name)
        made.append(OwnedWorld(caller, request.param, is_owner=name == "amy"))
    return made[0], made[1]


def owned(store: Store, amy: OwnedWorld) -> dict[str, str]:
    """The items that belong to the owner or name what is the owner's."""
    ids = {
        value
        for name, value in amy.names.items()
        if len(value) > 12 and not name.endswith("guardrail")  # which administrators make for all
    }
    partition = f"EXP#{amy.names['experiment']}"
    results = {}
    for item in store.items():
        kept = {name: value for name, value in item.items() if name not in CLOCK}
        text = json.dumps(kept, sort_keys=True, default=str)
        if any(made in text for made in (f"new {HIDDEN}", "new-skill-", "bulk-skill-")):
            continue  # what the other made, under a name like the owner's
        if item["type"]["S"] in ("issue", "trace_removal") and item["PK"]["S"] != partition:
            # The other's, which names a run, or traces that his experiment lacks, by ids that say
            # nothing of them.
            continue
        if (
            SECRET in text
            or HIDDEN in text
            or item["PK"]["S"] == partition
            or any(entity_id in text for entity_id in ids)
        ):
            results[f"{item['PK']['S']} {item['SK']['S']}"] = text
    return results


@pytest.mark.parametrize(("worlds", "domain"), CASES, indirect=["worlds"])
def test_no_spelling_crosses(
    worlds: Worlds, store: Store, domain: str, request: pytest.FixtureRequest
) -> None:
    amy, ben = worlds
    amy.prepare(domain)
    ben.prepare(domain)
    before = owned(store, amy)
    assert before
    rng = random.Random(request.node.name)
    failed: list[Any] = []
    last, taken = "GET", 0
    for name in routes_of(domain):
        if name in NOT_SENT:
            continue
        if {last, name.split()[0]} != {"GET"}:
            ben.prepare(domain)  # what it had may be gone
        last = name.split()[0]
        for call in ben.strange(name, amy, rng, 3 * EXAMPLES):
            status, text = ben.ask(call)
            taken += status < 300
            sent = f"{call.path} {json.dumps(call.pairs)} {call.body}"
            shown = [marker for marker in (SECRET, HIDDEN) if marker in text and marker not in sent]
            if shown or status >= 500:
                failed.append((name, sent, dict(call.headers), status, text[:300]))
        after = owned(store, amy)
        if after != before:
            failed.append((name, "changed", differences(before, after)))
            before = after
    assert not failed, "\n".join(map(str, failed))
    assert taken > len(routes_of(domain)) / 2, "most requests name something of their own, too"
    artifacts.store.cache_clear()


def test_graphql_answers_nothing_hidden(worlds: Worlds, store: Store) -> None:
    amy, ben = worlds
    amy.prepare("runs")
    ben.prepare("runs")
    before, shown_count = owned(store, amy), 0
    for template in GRAPHQL:
        for experiment, run in (("experiment", "run"), ("experiment", "deleted_run")):
            shown = {}
            for world in (amy, ben):
                names = {"e": amy.names[experiment], "r": amy.names[run]}
                query = (template % names).replace("⟦", "").replace("⟧", "")
                status, shown[world] = world.graphql(query)
                assert status == 200
            assert SECRET not in shown[ben], template
            assert HIDDEN not in shown[ben], template
            shown_count += SECRET in shown[amy] or HIDDEN in shown[amy]
    assert shown_count, "the owner is shown them"
    assert owned(store, amy) == before


def differences(before: dict[str, str], after: dict[str, str]) -> list[Any]:
    keys = {*before, *after}
    return [
        (key, before.get(key, "")[:400], after.get(key, "")[:400])
        for key in sorted(keys)
        if before.get(key) != after.get(key)
    ]


def test_requests_of_every_route_are_known() -> None:
    for domain in DOMAINS:
        assert set(routes_of(domain)) - set(NOT_SENT) <= set(REQUESTS)


def test_a_refused_request_without_an_id_is_no_failure(worlds: Worlds) -> None:
    """The body empties the variable of the path under its other spelling."""
    amy, ben = worlds
    amy.prepare("logged_models")
    ben.prepare("logged_models")
    name = "/2.0/mlflow/logged-models/{path_model_id}/tags/{tag_key}"
    route = routes_of("logged_models")[f"DELETE {name}"]
    for model, statuses in ((amy.names["model"], {403}), (ben.names["model"], {200, 400})):
        path = name.replace("{path_model_id}", model).replace("{tag_key}", "k")
        for emptied in (None, ""):
            status, text = ben.ask(Call(route, path, [("pathModelId", emptied)]))
            assert status in statuses, text
