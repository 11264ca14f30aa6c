"""The table of a stack that stands is protected by an update of one parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3

from operate import deployment
from tests import ministack
from tests.arch import project
from tests.engines import REGION

STACK = "mlflow-protected"


def protected(tables: Any, name: str) -> bool:
    """The emulator keeps a parameter's text where DynamoDB has a boolean."""
    value = tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
    return str(value).lower() == "true"


def test_a_table_is_protected_and_nothing_else_changes(tmp_path: Path) -> None:
    declared = project.template()["Parameters"]
    template = {
        "Parameters": {
            name: {"Type": "String", "Default": declared[name]["Default"]}
            for name in ("Stage", deployment.PROTECTION)
        },
        "Resources": {
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {
                    "BillingMode": "PAY_PER_REQUEST",
                    "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
                    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
                    "DeletionProtectionEnabled": {"Ref": deployment.PROTECTION},
                    "Tags": [{"Key": "stage", "Value": {"Ref": "Stage"}}],
                },
            }
        },
        "Outputs": {"TableName": {"Value": {"Ref": "Table"}}},
    }
    with ministack.running(tmp_path) as url:
        formation, tables = (
            boto3.client(
                service,
                endpoint_url=url,
                region_name=REGION,
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )
            for service in ("cloudformation", "dynamodb")
        )
        formation.create_stack(
            StackName=STACK,
            TemplateBody=json.dumps(template),
            Parameters=[{"ParameterKey": "Stage", "ParameterValue": "prod"}],
        )
        formation.get_waiter("stack_create_complete").wait(StackName=STACK)
        [made] = formation.describe_stacks(StackName=STACK)["Stacks"]
        name = made["Outputs"][0]["OutputValue"]
        assert not protected(tables, name)
        assert deployment.protect(formation, STACK)
        [stack] = formation.describe_stacks(StackName=STACK)["Stacks"]
        values = {
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in stack["Parameters"]
        }
        assert values == {"Stage": "prod", deployment.PROTECTION: "true"}
        assert stack["Outputs"][0]["OutputValue"] == name
        assert protected(tables, name)
