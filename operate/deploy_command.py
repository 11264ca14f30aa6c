"""The command ``deploy``: checks, builds and deploys a stage with the SAM CLI, and publishes the
web UI. A clone has ``make deploy`` and ``make publish-ui`` for it."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from operate import deployment, preflight, sam_build, ui_bucket, versions
from operate.module_loading import CannotRun
from operate.preflight import Plan

_SHOWN = ("UiUrl", "ApiUrl", "TableName")
"""Outputs of the stack that its operator needs next."""


def add_to(commands: Any) -> None:
    """Adds the command ``deploy`` to the parser of the administration commands."""
    does = "build and deploy a stage to AWS; needs the SAM CLI, make and Python 3.13"
    command = commands.add_parser("deploy", help=does, description=does)
    command.add_argument("stage", help="dev, staging or prod: a stage of samconfig.toml")
    command.add_argument("--stack", metavar="NAME", help="name of the stack (mlflow-STAGE)")
    choice = command.add_mutually_exclusive_group()
    choice.add_argument(
        "--check", action="store_true", help="say what is missing, and change nothing"
    )
    choice.add_argument("--build-only", action="store_true", help="build, and deploy nothing")
    command.add_argument(
        "--parameter-overrides",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="parameters of the template, instead of the stage's",
    )
    command.add_argument(
        "--architecture", choices=sam_build.ARCHITECTURES, default="arm64", help="(%(default)s)"
    )
    command.add_argument(
        "--build-folder",
        type=Path,
        default=sam_build.default_folder(),
        metavar="DIR",
        help="where the build goes (%(default)s)",
    )
    command.add_argument("--sam", default="sam", help="command of the SAM CLI (%(default)s)")
    command.add_argument(
        "--yes", action="store_true", help="deploy change sets of prod without asking"
    )


def run(given: argparse.Namespace) -> int:
    """Checks, builds and deploys a stage (the command ``deploy``). Returns 0 if the stage was
    deployed or nobody confirmed its change set (with ``--check``: could be deployed; with
    ``--build-only``: was built); otherwise 1, or the SAM CLI's exit code.

    Raises:
        CannotRun: something that the deployment needs is missing, or a call of AWS failed.
    """
    sam = shlex.split(given.sam)
    # It names the product's modules, which the SAM CLI must not import.
    os.environ.pop("PYTHONPATH", None)
    if given.build_only:
        print(sam_build.build(given.build_folder, given.architecture, sam))
        return 0
    import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

    session = boto3.Session()
    try:
        overrides = [f"Architecture={given.architecture}", *given.parameter_overrides]
        plan = deployment.plan_of(given.stage, given.stack, overrides, session)
        findings = preflight.examine(plan, session.client, session.region_name or None, sam)
        deployment.show(findings)
        if any(finding.state == "missing" for finding in findings):
            raise CannotRun("nothing was deployed")
        sam_build.interpreter()
        if given.check:
            return 0
        template = sam_build.build(given.build_folder, given.architecture, sam)
        others = (
            *("--template-file", str(template)),
            *("--config-file", str(sam_build.ROOT / "samconfig.toml")),
            *(("--no-confirm-changeset",) if given.yes else ()),
        )
        code = deployment.deploy(plan, session, sam, others)
        return code or _finish(plan, session)
    except (LookupError, OSError, BotoCoreError, ClientError, WaiterError) as error:
        raise CannotRun(str(error)) from error


def _finish(plan: Plan, session: Any) -> int:
    """Publishes the web UI, removes old versions, and prints what to use next."""
    service = session.client("cloudformation")
    [stack] = service.describe_stacks(StackName=plan.stack)["Stacks"]
    if stack["StackStatus"] in deployment.UNMADE:
        return 0  # nobody confirmed the change set
    if plan.value("Ui") == "true" and ui_bucket.main([plan.stack]):
        return 1
    if versions.main(["prune", plan.stack]):
        return 1
    for output in stack.get("Outputs", ()):
        if output["OutputKey"] in _SHOWN:
            print(f"{output['OutputKey']:12}{output['OutputValue']}")
    return 0
