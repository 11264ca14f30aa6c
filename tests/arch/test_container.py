"""The image and the compose file name what there is, and give the server no more than it needs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from local.command_line import default_data_folder, parse
from tests.arch import project

TEXT = (project.ROOT / "Containerfile").read_text().replace("\\\n", " ")
STEPS = [
    tuple(line.split(maxsplit=1)) for line in TEXT.splitlines() if line and not line.startswith("#")
]
COMPOSE: dict[str, Any] = yaml.safe_load((project.ROOT / "compose.yaml").read_text())
SERVER: dict[str, Any] = COMPOSE["services"]["mlflow"]


def last(name: str) -> str:
    return [text for step, text in STEPS if step == name][-1]


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for word in last("ENV").split())


def test_the_image_is_small_and_its_user_is_not_root() -> None:
    bases = {text.split()[0] for step, text in STEPS if step == "FROM"}
    assert len(bases) == 1
    version = re.fullmatch(r"python:(3\.\d+)-slim-\w+", bases.pop())
    assert version is not None, "one release of Python, without compilers"
    runtime = project.template()["Globals"]["Function"]["Runtime"]
    assert runtime == f"python{version[1]}", "that of the functions in AWS"
    user = last("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "Kubernetes asks for a number"
    order = [step for step, _ in STEPS]
    assert order.index("USER") > max(index for index, step in enumerate(order) if step == "RUN")
    assert "ADD" not in order


def test_the_image_holds_the_wheel_alone() -> None:
    copied = [text for step, text in STEPS if step == "COPY"]
    assert copied[0].split()[0] == "dist/mlflow_serverless-*.whl"
    for name in (".containerignore", "Containerfile.dockerignore"):
        lines = (project.ROOT / name).read_text().splitlines()
        assert lines[1:] == ["*", f"!{copied[0].split()[0]}"]


def test_the_server_keeps_everything_in_the_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    given = variables()
    monkeypatch.setenv("XDG_DATA_HOME", given["XDG_DATA_HOME"])
    assert json.loads(last("ENTRYPOINT")) == ["mlflow-serverless"]
    options = parse(json.loads(last("CMD")))
    assert options.data == default_data_folder()
    assert str(options.data).startswith(f"{last('VOLUME')}/")
    assert given["HOME"] == last("VOLUME")
    assert str(options.port) == last("EXPOSE")
    assert f"http://127.0.0.1:{options.port}/health" in last("HEALTHCHECK")


def test_compose_starts_that_image_with_a_login_for_this_machine_only() -> None:
    options = parse(SERVER["command"])
    assert (options.host, options.auth) == ("0.0.0.0", True)
    assert SERVER["build"]["dockerfile"] == "Containerfile"
    assert SERVER["ports"] == [f"127.0.0.1:{options.port}:{last('EXPOSE')}"]
    assert SERVER["read_only"] is True
    assert SERVER["cap_drop"] == ["ALL"]
    (volume,) = SERVER["volumes"]
    assert volume == f"{next(iter(COMPOSE['volumes']))}:{last('VOLUME')}"
    source = (project.ROOT / "local/environment.py").read_text()
    for name, value in SERVER["environment"].items():
        assert name in source
        assert value.startswith(f"${{{name}:")
    # A deployment with a password that everybody knows does not start.
    assert ":?" in SERVER["environment"]["MLFLOW_AUTH_ADMIN_PASSWORD"]
