"""The stage of an API stops all requests, and serves them again with its limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from operate.restore.api_stage import UNLIMITED, ApiStage
from tests.engines import REGION

STAGE = {"ApiId": "abc123", "StageName": "$default"}


def _answer(settings: dict[str, Any]) -> dict[str, Any]:
    return {"StageName": "$default", "DefaultRouteSettings": settings}


@pytest.mark.parametrize(
    ("parameters", "limits"),
    [
        ({"ThrottlingRate": "2000", "ThrottlingBurst": "4000"}, (2000, 4000)),
        ({"ThrottlingRate": "0", "ThrottlingBurst": "0"}, UNLIMITED),
    ],
)
def test_requests_stop_and_go_on(parameters: dict[str, str], limits: tuple[int, int]) -> None:
    """The other settings of the stage stay."""
    stacks, apis = (
        boto3.client(name, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        for name in ("cloudformation", "apigatewayv2")
    )
    formation, gateway = Stubber(stacks), Stubber(apis)
    with formation, gateway:
        listed = {
            "LogicalResourceId": "Api",
            "PhysicalResourceId": STAGE["ApiId"],
            "ResourceType": "AWS::ApiGatewayV2::Api",
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": datetime.now(UTC),
        }
        formation.add_response("list_stack_resources", {"StackResourceSummaries": [listed]})
        stage = ApiStage(stacks, apis, "mlflow-prod")
        kept = {"DetailedMetricsEnabled": True}
        before = {**kept, "ThrottlingRateLimit": 2000.0, "ThrottlingBurstLimit": 4000}
        stopped = {**kept, "ThrottlingRateLimit": 0, "ThrottlingBurstLimit": 0}
        rate, burst = limits
        again = {**kept, "ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
        for old, new, act in ((before, stopped, stage.stop), (stopped, again, stage.continue_)):
            if act == stage.continue_:
                values = [
                    {"ParameterKey": name, "ParameterValue": value}
                    for name, value in parameters.items()
                ]
                results = {
                    "StackName": "mlflow-prod",
                    "CreationTime": datetime.now(UTC),
                    "StackStatus": "UPDATE_COMPLETE",
                    "Parameters": values,
                }
                formation.add_response("describe_stacks", {"Stacks": [results]})
            gateway.add_response("get_stage", _answer(old), STAGE)
            gateway.add_response(
                "update_stage",
                _answer(new),
                {**STAGE, "DefaultRouteSettings": new},
            )
            act()
        for settings, is_stopped in ((stopped, True), (again, False)):
            gateway.add_response("get_stage", _answer(settings), STAGE)
            assert stage.is_stopped() is is_stopped
        formation.assert_no_pending_responses()
        gateway.assert_no_pending_responses()
