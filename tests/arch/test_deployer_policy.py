"""The policy of who deploys names every service of the template, and not more roles than ours."""

from __future__ import annotations

import json
import re
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.arch import project

POLICY = json.loads((project.ROOT / "operate/deployer_policy.json").read_text())
STATEMENTS: list[dict[str, Any]] = POLICY["Statement"]
MOST_CHARACTERS = 6144
"""Of a managed policy, without white space (IAM's quotas)."""
SERVICES = {
    "ApiGateway": "apigateway",
    "ApiGatewayV2": "apigateway",
    "AppConfig": "appconfig",
    "Backup": "backup",
    "Budgets": "budgets",
    "CloudFront": "cloudfront",
    "CloudWatch": "cloudwatch",
    "DynamoDB": "dynamodb",
    "Events": "events",
    "Glue": "glue",
    "IAM": "iam",
    "KMS": "kms",
    "KinesisFirehose": "firehose",
    "Lambda": "lambda",
    "Logs": "logs",
    "S3": "s3",
    "SNS": "sns",
    "SQS": "sqs",
    "Scheduler": "scheduler",
    "Serverless": "lambda",
}


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


ACTIONS = [action for statement in STATEMENTS for action in _listed(statement["Action"])]


def test_every_service_of_the_template_is_allowed() -> None:
    used = {
        resource["Type"].split("::")[1] for resource in project.template()["Resources"].values()
    }
    allowed = {action.split(":")[0] for action in ACTIONS}
    assert used <= set(SERVICES), "name the service of the new type"
    assert {SERVICES[name] for name in used} <= allowed
    assert "codedeploy" in allowed, "canaries"
    assert "cloudformation" in allowed


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("POST", "/apis"),
        ("PATCH", "/apis/a1b2c3/stages/$default"),
        ("POST", "/restapis"),
        ("PUT", "/restapis/a1b2c3/resources/d4/methods/ANY"),
        ("PATCH", "/restapis/a1b2c3/stages/live"),
        ("GET", "/account"),
    ],
)
def test_calls_of_both_apis_are_allowed(action: str, path: str) -> None:
    """An HTTP API and a REST API have other paths (AWS, "Actions, resources, and condition keys for
    API Gateway Management")."""
    arn = f"arn:aws:apigateway:eu-west-1::{path}"
    assert any(
        fnmatchcase(f"apigateway:{action}", allowed) and fnmatchcase(arn, pattern)
        for statement in STATEMENTS
        for allowed in _listed(statement["Action"])
        for pattern in _listed(statement["Resource"])
        if pattern != "*"
    )


def test_it_is_a_policy_that_iam_takes() -> None:
    assert len(re.sub(r"\s", "", json.dumps(POLICY))) <= MOST_CHARACTERS
    identities = [statement["Sid"] for statement in STATEMENTS]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch("[A-Za-z0-9]+", identity) for identity in identities)


def test_it_makes_nobody_an_administrator() -> None:
    """Roles are those of our stacks, and go to the services that use them; and the one that API
    Gateway makes for itself at an account's first domain."""
    [linked] = [
        statement
        for statement in STATEMENTS
        if statement["Action"] == "iam:CreateServiceLinkedRole"
    ]
    assert "/aws-service-role/ops.apigateway.amazonaws.com/" in linked["Resource"]
    for statement in STATEMENTS:
        assert "*" not in _listed(statement["Action"])
        if statement is not linked and any(
            action.startswith("iam:") for action in _listed(statement["Action"])
        ):
            assert _listed(statement["Resource"]) == ["arn:aws:iam::*:role/mlflow-*"]
    assert not any(fnmatchcase("iam:CreateUser", action) for action in ACTIONS)
    [passing] = [
        statement for statement in STATEMENTS if "iam:PassRole" in _listed(statement["Action"])
    ]
    trusted = json.dumps(
        [role["AssumeRolePolicyDocument"] for role in project.resources("AWS::IAM::Role").values()]
    )
    assert set(passing["Condition"]["StringEquals"]["iam:PassedToService"]) == set(
        re.findall(r"\w+\.amazonaws\.com", trusted)
    )


@pytest.mark.parametrize("stage", ["default", "dev", "staging", "prod"])
def test_stages_have_names_that_it_allows(stage: str) -> None:
    settings = tomllib.loads((project.ROOT / "samconfig.toml").read_text())[stage]
    name = settings["deploy"]["parameters"]["stack_name"]
    stack = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/{name}/0a1b"
    [stacks] = [
        statement for statement in STATEMENTS if statement["Sid"] == "StacksAndTheTransform"
    ]
    assert any(fnmatchcase(stack, pattern) for pattern in stacks["Resource"])
    [key] = [statement for statement in STATEMENTS if statement["Sid"] == "TheKeyOfSecrets"]
    [patterns] = key["Condition"]["StringLike"].values()
    assert any(fnmatchcase(name, pattern) for pattern in patterns)
    # Names that CloudFormation makes begin with the stack's.
    assert f"{name}-".startswith("mlflow-")


def test_what_names_no_resource_is_allowed_on_all() -> None:
    """Actions whose calls name no topic (AWS, "Actions, resources, and condition keys for SNS")."""
    [unnamed] = [statement for statement in STATEMENTS if statement["Sid"] == "WhatHasNoNameYet"]
    assert {"sns:Unsubscribe", "sns:GetSubscriptionAttributes"} <= set(unnamed["Action"])
