"""Whoever has the address of the packaged template can create a stack of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import ROOT
from tests.rehearsal.stack import SAM, Stack

pytestmark = [pytest.mark.timeout(900)]

BUCKET = "mlflow-packages"
NAME = "mlflow-launched"


def test_the_packaged_template_makes_a_stack(stack: Stack, tmp_path: Path) -> None:
    s3, formation = stack.client("s3"), stack.client("cloudformation")
    s3.create_bucket(Bucket=BUCKET)
    sam = f"{SAM.with_name('python')} {Path(__file__).with_name('sam.py')}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "operate.package", BUCKET, "--sam", sam),
            *("--build", str(stack.build), "--folder", str(tmp_path)),
        ],
        cwd=ROOT,
        env=stack.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    address = printed["template"]
    prefix = f"https://{BUCKET}.s3.{stack.region}.amazonaws.com/"
    assert address.startswith(prefix)
    listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert address.removeprefix(prefix) in {entry["Key"] for entry in listed}
    formation.create_stack(
        StackName=NAME,
        TemplateURL=f"{stack.endpoint}/{BUCKET}/{address.removeprefix(prefix)}",
        Parameters=[{"ParameterKey": "Authentication", "ParameterValue": "none"}],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    formation.get_waiter("stack_create_complete").wait(StackName=NAME)
    [made] = formation.describe_stacks(StackName=NAME)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in made["Outputs"]}
    assert {"ApiUrl", "UiUrl", "TableName", "ArtifactBucketName"} <= outputs.keys()
    described = stack.client("dynamodb").describe_table(TableName=outputs["TableName"])
    assert described["Table"]["TableStatus"] == "ACTIVE"
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=NAME)
    functions = {
        resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    }
    assert len(functions) > 20
    formation.delete_stack(StackName=NAME)
    formation.get_waiter("stack_delete_complete").wait(StackName=NAME)
