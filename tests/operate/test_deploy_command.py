"""The command `deploy`: what it hands to the SAM CLI, in which order, and what it says when
something is missing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from operate import admin_commands, deployment, preflight, sam_build, ui_bucket, versions
from operate.module_loading import CannotRun
from operate.preflight import CheckResult, Plan

RECORDER = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    seen = [os.environ.get(name) for name in ("PATH", "ARCHITECTURE", "PYTHONPATH")]
    log.write(json.dumps([sys.argv[1:], *seen]))
    log.write("\\n")
sys.exit({code})
"""


@pytest.fixture
def sam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a program that records how it is called, in place of the SAM CLI; python3.13 is this
    interpreter."""
    python = tmp_path / "bin" / sam_build.PYTHON
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sam_build, "interpreter", lambda: python)
    monkeypatch.setenv("PYTHONPATH", "of the product")

    def make(code: int = 0) -> Path:
        program = tmp_path / "sam"
        text = RECORDER.format(python=sys.executable, log=str(tmp_path / "calls"), code=code)
        program.write_text(text)
        program.chmod(0o755)
        return program

    return make


def calls(folder: Path) -> list[Any]:
    log = folder / "calls"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.parametrize("architecture", sam_build.ARCHITECTURES)
def test_it_builds_outside_of_the_product(
    sam: Callable[..., Path],
    tmp_path: Path,
    architecture: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "made"
    options = ("--build-folder", str(folder), "--architecture", architecture, "--sam", str(sam()))
    assert admin_commands.main(["deploy", "dev", "--build-only", *options]) == 0
    [(arguments, path, variable, modules)] = calls(tmp_path)
    assert (variable, modules) == (architecture, None)
    assert path.split(os.pathsep)[0] == str(tmp_path / "bin")
    named = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    assert arguments[0] == "build"
    assert named["--template-file"] == str(sam_build.ROOT / "template.yaml")
    assert Path(named["--build-dir"]).is_relative_to(folder / architecture)
    assert f"Architecture={architecture}" in arguments
    assert capsys.readouterr().out.strip() == f"{named['--build-dir']}/template.yaml"


def test_a_failed_build_deploys_nothing(
    sam: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--build-folder", str(tmp_path / "made"), "--sam", str(sam(3)))
    assert admin_commands.main(["deploy", "dev", "--build-only", *options]) == 1
    assert "sam build ended with 3; nothing was deployed" in capsys.readouterr().err


def test_without_the_sam_cli(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    absent = str(tmp_path / "absent")
    assert admin_commands.main(["deploy", "dev", "--build-only", "--sam", absent]) == 1
    assert f"there is no SAM CLI ({absent})" in capsys.readouterr().err


def test_an_empty_region_is_none(
    sam: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "")
    assert admin_commands.main(["deploy", "dev", "--check", "--sam", str(sam())]) == 1
    assert "set AWS_DEFAULT_REGION" in capsys.readouterr().out


def test_without_lambdas_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / sam_build.PYTHON
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setattr(sam_build, "_candidates", lambda: iter([other, tmp_path / "absent"]))
    with pytest.raises(CannotRun, match=r"no python3\.13 with pip was found"):
        sam_build.interpreter()


class Session:
    """Describes one stack."""

    region_name = "eu-west-1"

    def __init__(self, status: str) -> None:
        self._status = status

    def client(self, service: str) -> Any:
        assert service == "cloudformation"
        return self

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803 - AWS's name
        outputs = [{"OutputKey": "UiUrl", "OutputValue": f"https://{StackName}.example"}]
        return {"Stacks": [{"StackStatus": self._status, "Outputs": outputs, "Parameters": []}]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Sets the account; returns what is done after the SAM CLI, in its order."""

    def make(status: str = "UPDATE_COMPLETE", state: str = "ok", ui: str = "true") -> list[str]:
        after: list[str] = []
        given = {"Ui": ui, "Authentication": "basic"}
        plan = Plan("dev", "mlflow-dev", given, {}, {}, status)
        monkeypatch.setattr(boto3, "Session", lambda: Session(status))
        monkeypatch.setattr(deployment, "plan_of", lambda *_: plan)
        monkeypatch.setattr(preflight, "examine", lambda *_: [CheckResult("x", state, "y")])
        for module in (ui_bucket, versions):
            name = module.__name__.rpartition(".")[2]
            monkeypatch.setattr(
                module, "main", lambda words, name=name: after.append(f"{name} {words[-1]}")
            )
        return after

    return make


def test_a_stage_is_built_deployed_and_gets_its_pages(
    sam: Callable[..., Path],
    world: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    after = world()
    options = ("--build-folder", str(tmp_path / "made"), "--sam", str(sam()), "--yes")
    assert admin_commands.main(["deploy", "dev", *options]) == 0
    (built, *_), (deployed, *_) = calls(tmp_path)
    assert (built[0], deployed[0]) == ("build", "deploy")
    template = deployed[deployed.index("--template-file") + 1]
    assert template == f"{built[built.index('--build-dir') + 1]}/template.yaml"
    config = deployed[deployed.index("--config-file") + 1]
    assert config == str(sam_build.ROOT / "samconfig.toml")
    assert "--no-confirm-changeset" in deployed
    assert after == ["ui_bucket mlflow-dev", "versions mlflow-dev"]
    assert "https://mlflow-dev.example" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "ui", "expected"),
    [
        ("REVIEW_IN_PROGRESS", "true", []),  # nobody confirmed the change set
        ("UPDATE_COMPLETE", "false", ["versions mlflow-dev"]),
    ],
)
def test_pages_go_into_a_stack_that_has_a_place_for_them(
    sam: Callable[..., Path],
    world: Callable[..., list[str]],
    tmp_path: Path,
    status: str,
    ui: str,
    expected: list[str],
) -> None:
    after = world(status, ui=ui)
    options = ("--build-folder", str(tmp_path / "made"), "--sam", str(sam()))
    assert admin_commands.main(["deploy", "dev", *options]) == 0
    assert after == expected


@pytest.mark.parametrize(
    ("state", "words", "code"), [("missing", (), 1), ("missing", ("--check",), 1)]
)
def test_what_is_missing_stops_it_before_the_build(
    sam: Callable[..., Path],
    world: Callable[..., list[str]],
    tmp_path: Path,
    state: str,
    words: tuple[str, ...],
    code: int,
) -> None:
    after = world(state=state)
    assert admin_commands.main(["deploy", "dev", "--sam", str(sam()), *words]) == code
    assert (calls(tmp_path), after) == ([], [])


def test_a_check_changes_nothing(
    sam: Callable[..., Path], world: Callable[..., list[str]], tmp_path: Path
) -> None:
    after = world()
    assert admin_commands.main(["deploy", "dev", "--check", "--sam", str(sam())]) == 0
    assert (calls(tmp_path), after) == ([], [])
