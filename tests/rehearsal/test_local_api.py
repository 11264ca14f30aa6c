"""`sam local start-api` serves each route by its function, as the SAM CLI's own code finds it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from operate import local_api
from tests.arch import project
from tests.rehearsal.stack import SAM, NoInterpreter, interpreter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("sam_routes.py")


@pytest.fixture(scope="module", autouse=True)
def sam() -> None:
    try:
        interpreter()
    except NoInterpreter as missing:
        pytest.skip(str(missing))


def served(template: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SAM.with_name("python")), str(SCRIPT), str(template)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_each_route_reaches_its_function(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text((project.ROOT / "template.yaml").read_text())
    assert local_api.main([str(template)]) == 0
    answered = served(tmp_path / local_api.NAME)
    assert answered.returncode == 0, answered.stderr
    found = {
        f"{'ANY' if len(methods) > 1 else methods[0]} {path}" if path != "$default" else path: name
        for path, methods, name in json.loads(answered.stdout.splitlines()[-1])
    }
    packages = project.handlers()
    assert {key: packages[name] for key, name in found.items()} == project.routes()


def test_the_template_that_is_deployed_cannot_be_served(tmp_path: Path) -> None:
    """So the derived one is needed; when this fails, the SAM CLI has learnt it."""
    template = tmp_path / "template.yaml"
    template.write_text((project.ROOT / "template.yaml").read_text())
    assert "TypeError" in served(template).stderr


def test_what_is_derived_differs_in_logins_and_names_of_functions_only() -> None:
    whole, derived = project.template(), local_api.servable(project.template())
    assert whole["Resources"].keys() - derived["Resources"].keys() == {"Authorizer"}
    for name, resource in derived["Resources"].items():
        if not resource["Type"].startswith("AWS::ApiGatewayV2::"):
            assert resource == whole["Resources"][name]
    declared = derived["Globals"]["Function"]["Environment"]["Variables"]
    added = declared.keys() - whole["Globals"]["Function"]["Environment"]["Variables"].keys()
    assert added == set(local_api.SETTABLE)
    assert not any(declared[name] for name in added)
