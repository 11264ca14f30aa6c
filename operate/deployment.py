"""``python -m operate.deployment STAGE``: checks what a deployment needs, deploys the build, and
turns on the table's deletion protection after the stack is created.

CloudFormation cannot remove a protected table when the creation of its stack fails, so the first
deployment creates the table without protection.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from local import cloudformation
from operate import preflight
from operate.preflight import CheckResult, Plan

ROOT: Final = Path(__file__).resolve().parents[1]
PROTECTION: Final = "DeletionProtection"
CAPABILITIES: Final = ("CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")
UNMADE: Final = ("", "REVIEW_IN_PROGRESS")
"""Statuses of a stack that this deployment will create."""

_INEXPRESSIBLE: Final = re.compile(r"""\\(?:[ "'\\]|$)""")
"""Matches a backslash that the SAM CLI would take for an escape of the character after it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``python -m operate.deployment``. Returns 0 if the SAM CLI succeeded, or with
    ``--check`` if the stack could be deployed; otherwise 1, or the exit code of the SAM CLI."""
    parser = argparse.ArgumentParser(
        prog="python -m operate.deployment",
        description=__doc__,
        epilog="Other arguments go to `sam deploy`; --parameter-overrides add to the stage's.",
    )
    parser.add_argument("stage", help="stage in samconfig.toml")
    parser.add_argument("--stack", help="name of the stack (default: that of the stage)")
    parser.add_argument("--check", action="store_true", help="only check, deploy nothing")
    parser.add_argument("--sam", default="sam", help="command of the SAM CLI (%(default)s)")
    parser.add_argument("--parameter-overrides", nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--parameters", type=Path, metavar="FILE", help="parameters as JSON; overrides win"
    )
    given, others = parser.parse_known_args(arguments)
    sam = shlex.split(given.sam)
    import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

    session = boto3.Session()
    try:
        overrides = [*parameters_in(given.parameters), *given.parameter_overrides]
        plan = plan_of(given.stage, given.stack, overrides, session)
        findings = preflight.examine(plan, session.client, session.region_name or None, sam)
        show(findings)
        if any(finding.state == "missing" for finding in findings):
            print("operate.deployment: nothing was deployed", file=sys.stderr)
            return 1
        return 0 if given.check else deploy(plan, session, sam, others)
    except (LookupError, OSError, BotoCoreError, ClientError, WaiterError) as error:
        print(f"operate.deployment: {error}", file=sys.stderr)
        return 1


def parameters_in(file: Path | None) -> list[str]:
    """Returns the parameters of a stack that `operate.restore whole` wrote to a file, as
    NAME=VALUE; none if ``file`` is None.

    Raises:
        LookupError: the file holds no JSON object.
    """
    if file is None:
        return []
    try:
        read = dict(json.loads(file.read_text()))
    except (TypeError, ValueError) as error:
        raise LookupError(f"--parameters {file}: {error}") from error
    return [f"{name}={value}" for name, value in read.items()]


def plan_of(stage: str, stack: str | None, overrides: Sequence[str], session: Any) -> Plan:
    """Returns the plan of a deployment: a stage of samconfig.toml with further parameters.

    Args:
        stack: the stack's name; None for the stage's own.
        overrides: parameters as NAME=VALUE, which win over the stage's.

    Raises:
        LookupError: samconfig.toml has no such stage, or a parameter has no ``=``.
    """
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text()).get(stage)
    if configured is None:
        raise LookupError(f"samconfig.toml has no stage {stage}")
    settings = configured["deploy"]["parameters"]
    declared = settings.get("parameter_overrides", "")
    pairs = [*(shlex.split(declared) if isinstance(declared, str) else declared), *overrides]
    for pair in pairs:
        if "=" not in pair:
            raise LookupError(f"a parameter is NAME=VALUE, not {pair}")
    name = stack or settings["stack_name"]
    status, deployed = _deployed(session, name)
    template = cloudformation.load(ROOT / "template.yaml")["Parameters"]
    parameters = dict(pair.split("=", 1) for pair in pairs)
    return Plan(stage, name, parameters, template, deployed, status)


def _deployed(session: Any, stack: str) -> tuple[str, Mapping[str, str] | None]:
    """Returns the status and the parameters of a stack. Returns ``("", None)`` if the stack does
    not exist, or if there are no credentials or no region to ask with, which the checks report."""
    if not session.region_name:
        return "", None
    try:
        [stacks] = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            return "", None
        raise
    except BotoCoreError:  # no credentials
        return "", None
    values = {
        parameter["ParameterKey"]: parameter["ParameterValue"]
        for parameter in stacks.get("Parameters", ())
    }
    return stacks["StackStatus"], None if stacks["StackStatus"] in UNMADE else values


def show(findings: Sequence[CheckResult]) -> None:
    """Prints one line for each result of the checks before a deployment."""
    for subject, state, detail in findings:
        print(f"{state:8}{subject:12}{detail}")


def deploy(plan: Plan, session: Any, sam: Sequence[str], others: Sequence[str]) -> int:
    """Deploys the stack that ``plan`` describes with the SAM CLI, with the further arguments
    ``others`` of `sam deploy`. If the stack is new and its parameter ``DeletionProtection`` is
    true, sets the parameter only afterwards. Returns the SAM CLI's exit code."""
    late = plan.status in UNMADE and plan.value(PROTECTION) == "true"
    parameters = {**plan.given, **({PROTECTION: "false"} if late else {})}
    done = subprocess.run(
        [
            *(*sam, "deploy", "--config-env", plan.stage, "--stack-name", plan.stack),
            *("--no-fail-on-empty-changeset", *others),
            *("--parameter-overrides", *(sam_parameter(*pair) for pair in parameters.items())),
        ],
        check=False,
        cwd=ROOT,
    )
    if done.returncode == 0 and late and protect(session.client("cloudformation"), plan.stack):
        print(f"{plan.stack}: the table is protected from deletion")
    return done.returncode


def sam_parameter(name: str, text: str) -> str:
    """Returns a template parameter with its value in quotes, in the form that the SAM CLI parses.
    Without quotes the CLI silently ends a value at the first blank, and refuses an empty value.

    Raises:
        LookupError: the value cannot be quoted so that the SAM CLI restores it.
    """
    if _INEXPRESSIBLE.search(text):
        raise LookupError(f"{name}: SAM cannot be given a backslash at the end or before a quote")
    quoted = text.replace('"', '\\"')
    return f'{name}="{quoted}"'


def protect(service: Any, stack: str) -> bool:
    """Turns on the parameter that protects the table of a new stack from deletion, changes nothing
    else, and waits until the stack is updated. Returns False if the stack was not created, because
    nobody confirmed its change set."""
    [described] = service.describe_stacks(StackName=stack)["Stacks"]
    if described["StackStatus"] in UNMADE:
        return False
    service.update_stack(
        StackName=stack,
        UsePreviousTemplate=True,
        Parameters=[
            {"ParameterKey": PROTECTION, "ParameterValue": "true"}
            if parameter["ParameterKey"] == PROTECTION
            else {"ParameterKey": parameter["ParameterKey"], "UsePreviousValue": True}
            for parameter in described["Parameters"]
        ],
        Capabilities=list(CAPABILITIES),
    )
    service.get_waiter("stack_update_complete").wait(StackName=stack)
    return True


if __name__ == "__main__":
    sys.exit(main())
