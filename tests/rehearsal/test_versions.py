"""Deployments after the second, in each way that may change what callers reach; and a stack of the
same name in another region of the account."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import issuer
from tests.rehearsal import aliases, traffic
from tests.rehearsal.changed_builds import changed
from tests.rehearsal.emulator import MACHINE
from tests.rehearsal.layer_builds import build as built_layer
from tests.rehearsal.stack import Stack, interpreter
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ELSEWHERE = "eu-central-1"
AUDIENCE, ADMINISTRATORS = "mlflow", "administrators"
QUERY = ("POST", "/api/2.0/mlflow/experiments/search", {"max_results": 1})


def test_an_unchanged_deployment_publishes_nothing(stack: Stack) -> None:
    before, kept = aliases.published(stack), aliases.versions(stack)
    assert not aliases.wrong(before)
    stack.deploy(stack.build)
    assert aliases.published(stack) == before
    assert aliases.versions(stack) == kept


def test_one_changed_function_moves_all_together(stack: Stack, tmp_path: Path) -> None:
    before = aliases.published(stack)
    path = "ServerFunction/server_info/app.py"
    build = changed(stack.build, tmp_path, path, '"""', '"""Changed. ', 1)
    digests = build / "RevisionLayer" / "functions.sha256"
    digests.write_text(digests.read_text() + "changed\n")
    experiment = stack.ask("POST", "experiments/create", name="another upgrade")["experiment_id"]
    run_id = stack.ask("POST", "runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    with traffic.running(stack, run_id) as seen:
        stack.deploy(build)
    assert not seen.failures
    assert set(seen.statuses) == {200}
    after = aliases.published(stack)
    assert not aliases.wrong(after)
    assert all(function.version > before[name].version for name, function in after.items())
    assert len({function.configuration["Description"] for function in after.values()}) == 1
    stack.deploy(build, DefaultPermission="READ")


def test_callers_are_taken_back_and_old_versions_removed(stack: Stack) -> None:
    """After the test above, whose last deployment changed a parameter."""
    newest, kept = aliases.published(stack), aliases.versions(stack)
    assert all(numbers[-1] == newest[name].version for name, numbers in kept.items())
    assert all(len(numbers) > 2 for numbers in kept.values())
    assert "Settings" in stack.versions("rollback")
    back = aliases.published(stack)
    for name, function in back.items():
        assert function.version == kept[name][-2]
        variables = function.configuration["Environment"]["Variables"]
        assert variables["DEFAULT_PERMISSION"] == "USE", name
    assert stack.call(*QUERY)[0] == 200
    stack.deploy(stack.build, DefaultPermission="EDIT")
    newest = aliases.published(stack)
    assert not aliases.wrong(newest)
    stack.versions("prune")
    left = aliases.versions(stack)
    assert all(numbers[-1] == newest[name].version for name, numbers in left.items())
    assert {len(numbers) for numbers in left.values()} == {2}
    assert stack.call(*QUERY)[0] == 200


@pytest.fixture(scope="module")
def elsewhere(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of the same name in another region, open to everybody; its issuer of tokens is on
    this machine, whose processors the layer that verifies them is built for."""
    folder = tmp_path_factory.mktemp("elsewhere")
    build = folder / "build"
    shutil.copytree(stack.build, build)
    template = build / "template.yaml"
    assert "(https://[^ ]+)?" in template.read_text()
    template.write_text(template.read_text().replace("(https://[^ ]+)?", "(https?://[^ ]+)?"))
    tokens = built_layer("TokensLayer", "layers/tokens", interpreter(), folder, MACHINE)
    shutil.rmtree(build / "TokensLayer")
    shutil.copytree(tokens, build / "TokensLayer")
    other = Stack(stack.endpoint, folder / "sam.log", stack.name, ELSEWHERE)
    other.deploy(build, Authentication="none")
    other.allow_what_the_emulator_asks_for_besides()
    yield other
    other.delete()


def test_names_are_of_one_region_each(stack: Stack, elsewhere: Stack) -> None:
    assert set(aliases.functions(elsewhere)) == set(aliases.functions(stack))
    service = elsewhere.client("cloudfront")
    names = [
        origin_access_control["OriginAccessControl"]["OriginAccessControlConfig"]["Name"]
        for origin_access_control in (
            service.get_origin_access_control(Id=item["Id"])
            for item in service.list_origin_access_controls()["OriginAccessControlList"]["Items"]
        )
    ]
    assert len(names) == len(set(names)) == 2
    assert stack.outputs["DashboardName"] != elsewhere.outputs["DashboardName"]


def test_logins_change_in_both_directions(elsewhere: Stack) -> None:
    """What one mode wrote the next one reads; nobody passes whom the last mode would not."""
    experiment = elsewhere.ask("POST", "experiments/create", name="open")["experiment_id"]
    run_id = elsewhere.ask("POST", "runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    assert elsewhere.call(*QUERY, user=None)[0] == 200
    made = elsewhere.admin("create-admin", "--name", ADMIN[0], text=f"{ADMIN[1]}\n")
    assert made.returncode == 0, made.stderr
    with issuer.running() as signs:
        signs.publish("a-key", issuer.ec_key())
        token = signs.token("a-key", groups=[ADMINISTRATORS])
        parameters = {"OidcIssuer": signs.url, "OidcAudience": AUDIENCE}
        for mode, passes, refused in (
            ("basic", ADMIN, (None, token)),
            ("oidc", token, (None, ADMIN)),
            ("basic", ADMIN, (None, token)),
            ("none", None, ()),
            ("oidc", token, (None, ADMIN)),
        ):
            with traffic.running(elsewhere, run_id) as seen:
                elsewhere.deploy(
                    elsewhere.build,
                    Authentication=mode,
                    OidcAdminGroup=ADMINISTRATORS,
                    **parameters,
                )
            assert not seen.failures, mode
            assert set(seen.statuses) <= {200, 401}, mode
            assert not aliases.wrong(aliases.published(elsewhere)), mode
            for nobody in refused:
                status, _, headers = elsewhere.call(*QUERY, user=nobody)
                assert status == 401, (mode, nobody)
                assert headers["www-authenticate"].split()[0] == (
                    "Basic" if mode == "basic" else "Bearer"
                )
            status, body, _ = elsewhere.call(
                "GET", f"/api/2.0/mlflow/runs/get?run_id={run_id}", user=passes
            )
            assert status == 200, (mode, body)
            assert body["run"]["info"]["experiment_id"] == experiment
