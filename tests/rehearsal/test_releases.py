"""From the last release to this version and back, while calls go on; and aliases of both versions
at once. The checkup is green at each step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import release_source
from tests.contract.released_data import LAST_RELEASE
from tests.rehearsal import aliases, traffic
from tests.rehearsal.stack import Stack, build, interpreter
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

ROUTES = ("routes",)
"""A step that calls each function and takes long; test_doctor takes it."""
MIXED = (*ROUTES, "versions")
"""Without the step that says that an alias serves another version than the last, as it does."""


@pytest.fixture(scope="module")
def upgraded(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of the last release beside the other one."""
    folder = tmp_path_factory.mktemp("last")
    source = release_source.unpack(LAST_RELEASE, folder)
    other = Stack(stack.endpoint, folder / "sam.log", f"{stack.name}-upgraded")
    other.begin(build(interpreter(), folder / "build", source))
    yield other
    other.delete()


def moved(upgraded: Stack, versions: dict[str, int]) -> None:
    """Points the alias of each function, by logical id, to a version."""
    service = upgraded.client("lambda")
    for logical_id, name in aliases.functions(upgraded).items():
        service.update_alias(
            FunctionName=name, Name="live", FunctionVersion=str(versions[logical_id])
        )


def test_up_side_by_side_and_back(stack: Stack, upgraded: Stack, tmp_path: Path) -> None:
    experiment = upgraded.ask("POST", "experiments/create", name="of both")["experiment_id"]
    run_id = upgraded.ask("POST", "runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    old = {name: function.version for name, function in aliases.published(upgraded).items()}
    with traffic.running(upgraded, run_id) as seen:
        upgraded.deploy(stack.build)
        upgraded.allow_what_the_emulator_asks_for_besides()
        new = {name: function.version for name, function in aliases.published(upgraded).items()}
        assert all(new[name] > number for name, number in old.items())
        upgraded.doctor(upgraded.url, tmp_path / "new.json", *ROUTES)
        rng = random.Random(LAST_RELEASE)
        mixture = {
            name: rng.choice((number, old.get(name, number))) for name, number in new.items()
        }
        moved(upgraded, mixture)
        assert len({mixture[name] == new[name] for name in new}) == 2
        upgraded.doctor(upgraded.url, tmp_path / "mixed.json", *MIXED)
        moved(upgraded, new)
        upgraded.versions("rollback")
        back = {name: function.version for name, function in aliases.published(upgraded).items()}
        assert back == {**new, **old}, "a function that this version brought stays"
        upgraded.doctor(upgraded.url, tmp_path / "back.json", *MIXED)
    assert not seen.failures
    assert set(seen.statuses) == {200}
    status, body, _ = upgraded.call("GET", f"/api/2.0/mlflow/runs/get?run_id={run_id}", user=ADMIN)
    assert status == 200
    latest = {metric["key"]: metric["value"] for metric in body["run"]["data"]["metrics"]}
    for caller in range(traffic.CALLERS):
        history = upgraded.ask(
            "GET", f"metrics/get-history?run_id={run_id}&metric_key=m{caller}&max_results=25000"
        )["metrics"]
        steps = [point["step"] for point in history]
        assert sorted(steps) == list(range(len(steps))), "each point once, by whichever version"
        assert latest[f"m{caller}"] == len(steps) - 1
