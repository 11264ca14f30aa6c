"""Requests to both APIs of a stack stop and go on, on an emulator of API Gateway."""

from __future__ import annotations

import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operate.restore import __main__ as command
from operate.restore.api_stages import BEFORE, NO_LIMITS, Limits, limits_of
from operate.restore.freeze import Freeze
from tests import ministack
from tests.arch import project
from tests.engines import REGION

pytestmark = [pytest.mark.contract, pytest.mark.timeout(240)]

LIMITED: Final = {"ThrottlingRate": "2000", "ThrottlingBurst": "4000"}
RESOURCES: Final[dict[str, Any]] = {
    "Api": {
        "Type": "AWS::ApiGatewayV2::Api",
        "Properties": {"Name": "api", "ProtocolType": "HTTP"},
    },
    "ApiStage": {
        "Type": "AWS::ApiGatewayV2::Stage",
        "Properties": {
            "ApiId": {"Ref": "Api"},
            "StageName": "$default",
            "AutoDeploy": True,
            "StageVariables": {"ours": "kept"},
        },
    },
}
STREAMS: Final[dict[str, Any]] = {
    "Streams": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Name": "streams"}},
    "Call": {
        "Type": "AWS::ApiGateway::Method",
        "Properties": {
            "RestApiId": {"Ref": "Streams"},
            "ResourceId": {"Fn::GetAtt": ["Streams", "RootResourceId"]},
            "HttpMethod": "GET",
            "AuthorizationType": "NONE",
            "Integration": {
                "Type": "MOCK",
                "RequestTemplates": {"application/json": '{"statusCode": 200}'},
                "IntegrationResponses": [{"StatusCode": "200"}],
            },
            "MethodResponses": [{"StatusCode": "200"}],
        },
    },
    "Deployment": {
        "Type": "AWS::ApiGateway::Deployment",
        "DependsOn": "Call",
        "Properties": {"RestApiId": {"Ref": "Streams"}},
    },
    "StreamsStage": {
        "Type": "AWS::ApiGateway::Stage",
        "Properties": {
            "RestApiId": {"Ref": "Streams"},
            "StageName": "live",
            "DeploymentId": {"Ref": "Deployment"},
            "Variables": {"ours": "kept"},
        },
    },
}


class Cloud:
    """The clients of an emulator."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.numbers = itertools.count()
        self.cloudformation, self.http, self.rest = (
            self.client(name) for name in ("cloudformation", "apigatewayv2", "apigateway")
        )

    def client(self, name: str) -> Any:
        return boto3.client(
            name,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


class Stack:
    """A stack with the APIs of the template, and what is known of their stages."""

    def __init__(
        self, cloud: Cloud, parameters: Mapping[str, str], *, streams: bool = True
    ) -> None:
        self.cloud = cloud
        self.name = f"frozen-{next(cloud.numbers)}"
        body = {
            "Parameters": {name: {"Type": "Number"} for name in LIMITED},
            "Resources": {**RESOURCES, **(STREAMS if streams else {})},
        }
        cloud.cloudformation.create_stack(
            StackName=self.name,
            TemplateBody=json.dumps(body),
            Parameters=[
                {"ParameterKey": name, "ParameterValue": parameters.get(name, "0")}
                for name in LIMITED
            ],
        )
        cloud.cloudformation.get_waiter("stack_create_complete").wait(StackName=self.name)
        listed = cloud.cloudformation.list_stack_resources(StackName=self.name)
        ids = {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in listed["StackResourceSummaries"]
        }
        self.http = {"ApiId": ids["Api"], "StageName": "$default"}
        self.rest = {"restApiId": ids.get("Streams", ""), "stageName": "live"}
        if parameters:  # as the template does with these parameters
            self.limit(int(parameters["ThrottlingRate"]), int(parameters["ThrottlingBurst"]))

    def limit(self, rate: int, burst: int) -> None:
        settings = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
        self.cloud.http.update_stage(
            **self.http, DefaultRouteSettings={"DetailedMetricsEnabled": True, **settings}
        )
        if self.rest["restApiId"]:
            for path, value in (("rateLimit", rate), ("burstLimit", burst)):
                self.patch(f"/*/*/throttling/{path}", str(value))

    def patch(self, path: str, value: str) -> None:
        operation = {"op": "replace", "path": path, "value": value}
        self.cloud.rest.update_stage(**self.rest, patchOperations=[operation])

    def settings(self) -> list[Any]:
        """Settings and variables of both stages. Removed variables are empty in the emulator."""
        http = self.cloud.http.get_stage(**self.http)
        rest = self.cloud.rest.get_stage(**self.rest) if self.rest["restApiId"] else {}
        return [
            {name: value for name, value in found.items() if value}
            for found in (
                http.get("DefaultRouteSettings", {}),
                http.get("StageVariables", {}),
                rest.get("methodSettings", {}),
                rest.get("variables", {}),
            )
        ]

    def status(self) -> int:
        """What the REST API answers; the emulator keeps no limits of an HTTP API."""
        path = f"restapis/{self.rest['restApiId']}/live/_user_request_/"
        try:
            with urllib.request.urlopen(f"{self.cloud.endpoint}/{path}") as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def freeze(self) -> Freeze:
        cloud = self.cloud
        return Freeze(cloud.cloudformation, cloud.http, cloud.rest, self.name)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with ministack.running(tmp_path_factory.mktemp("ministack")) as endpoint:
        yield Cloud(endpoint)


@pytest.fixture(autouse=True)
def _environment(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command talks to the emulator."""
    ministack.use(cloud.endpoint, monkeypatch)


@contextmanager
def failing(client: Any, operation: str) -> Iterator[None]:
    """The process ends before this call of the client."""

    def end(**_: Any) -> None:
        raise KeyboardInterrupt

    event = f"before-call.apigateway.{operation}"
    client.meta.events.register(event, end)
    try:
        yield
    finally:
        client.meta.events.unregister(event, end)


def test_the_template_has_these_apis_and_no_other() -> None:
    resources = project.template()["Resources"]
    types = {
        name: each["Type"]
        for name, each in {**RESOURCES, **STREAMS}.items()
        if each["Type"].rpartition("::")[2] in ("Api", "RestApi", "Stage")
    }
    found = {name: each["Type"] for name, each in resources.items()}
    assert types.items() <= found.items()
    for kind in set(types.values()):
        assert [*found.values()].count(kind) == 1, f"freeze the other {kind}, too"
    assert "AWS::Lambda::Url" not in found.values(), "requests that no stage stops"


def test_limits_come_back_as_they_were(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """Each stage has its own, which are not those of the stack's parameters."""
    stack = Stack(cloud, LIMITED)
    stack.patch("/*/*/throttling/rateLimit", "12.5")
    stack.patch("/*/*/logging/loglevel", "ERROR")
    before = stack.settings()
    assert before[0]["ThrottlingRateLimit"] == 2000
    assert stack.status() == 200
    for _ in range(2):
        assert command.main(["freeze", stack.name]) == 0
        assert "every request to ApiUrl and StreamsUrl is answered 429" in capsys.readouterr().out
        assert stack.status() == 429
        assert stack.freeze().admitting() == []
    for part in stack.settings()[1::2]:
        assert part["ours"] == "kept"
    assert command.main(["thaw", stack.name]) == 0
    output = capsys.readouterr().out
    assert "ApiUrl serves 2,000 requests a second again, 4,000 at one moment" in output
    assert "StreamsUrl serves 12 requests a second again" in output
    assert stack.settings() == before
    assert stack.status() == 200
    # A thaw without a freeze.
    assert command.main(["thaw", stack.name]) == 0
    assert "no API is frozen, nothing was changed" in capsys.readouterr().out
    assert stack.settings() == before


def test_without_limits_the_quota_of_the_account_applies(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = Stack(cloud, {})
    before = stack.settings()
    assert stack.freeze().stop() == ["ApiUrl", "StreamsUrl"]
    assert stack.status() == 429
    assert command.main(["thaw", stack.name]) == 0
    output = capsys.readouterr().out
    assert "ApiUrl serves 10,000 requests a second again, 5,000 at one moment" in output
    assert "StreamsUrl serves requests again, up to the quota of the account" in output
    assert stack.settings()[1:] == before[1:]
    assert stack.status() == 200


def test_who_may_not_read_the_quota_is_refused_before_requests_stop(cloud: Cloud) -> None:
    stack = Stack(cloud, {})
    before = stack.settings()
    with failing(cloud.rest, "GetAccount"), pytest.raises(KeyboardInterrupt):
        stack.freeze().stop()
    assert stack.settings() == before
    stack.freeze().stop()
    with failing(cloud.rest, "GetAccount"):
        assert stack.freeze().end()["ApiUrl"] == (10_000, 5_000)


@pytest.mark.parametrize("parameters", [LIMITED, {}])
def test_what_was_killed_in_between_is_continued(
    cloud: Cloud, parameters: Mapping[str, str]
) -> None:
    stack = Stack(cloud, parameters)
    before = stack.settings()
    with failing(cloud.rest, "UpdateStage"), pytest.raises(KeyboardInterrupt):
        stack.freeze().stop()
    assert stack.freeze().admitting() == ["StreamsUrl"]
    stack.freeze().stop()
    assert stack.freeze().admitting() == []
    with failing(cloud.rest, "UpdateStage"), pytest.raises(KeyboardInterrupt):
        stack.freeze().end()
    assert stack.freeze().admitting() == ["ApiUrl"]
    assert [*stack.freeze().end()] == ["StreamsUrl"]
    assert stack.settings()[1:] == before[1:]
    assert stack.freeze().end() == {}
    # A freeze that was killed is thawed without its end.
    with failing(cloud.rest, "UpdateStage"), pytest.raises(KeyboardInterrupt):
        stack.freeze().stop()
    assert [*stack.freeze().end()] == ["ApiUrl"]
    assert stack.settings()[1:] == before[1:]


def test_limits_of_a_deployment_since_the_freeze_stay(cloud: Cloud) -> None:
    stack = Stack(cloud, LIMITED)
    stack.freeze().stop()
    stack.limit(70, 80)
    assert stack.freeze().admitting() == ["ApiUrl", "StreamsUrl"]
    assert {*stack.freeze().end().values()} == {(70, 80)}
    assert all(BEFORE not in part for part in stack.settings()), "nothing is left to bring back"
    stack.freeze().stop()
    assert {*stack.freeze().end().values()} == {(70, 80)}


def test_stages_whose_limits_nobody_knows_get_those_of_the_parameters(cloud: Cloud) -> None:
    for parameters, limits in ((LIMITED, (2000, 4000)), ({}, NO_LIMITS)):
        stack = Stack(cloud, parameters)
        stack.limit(0, 0)  # by somebody's hand
        stack.freeze().stop()
        served = stack.freeze().end()
        assert served["StreamsUrl"] == limits
        assert served["ApiUrl"] == (limits if parameters else (10_000, 5_000))


def test_a_stack_without_the_api_for_streams_is_stopped(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = Stack(cloud, LIMITED, streams=False)
    before = stack.settings()
    assert command.main(["freeze", stack.name]) == 0
    assert "every request to ApiUrl is answered 429" in capsys.readouterr().out
    assert stack.settings() != before
    assert command.main(["thaw", stack.name]) == 0
    assert stack.settings() == before


def test_routes_with_limits_of_their_own_are_named(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would go on, so the command changes nothing."""
    stack = Stack(cloud, LIMITED)
    stack.patch("/~1/GET/throttling/rateLimit", "5")
    before = stack.settings()
    assert command.main(["freeze", stack.name]) == 1
    assert "//GET has throttling limits of its own" in capsys.readouterr().err
    assert stack.settings() == before
    for path in ("rateLimit", "burstLimit"):
        stack.patch(f"/~1/GET/throttling/{path}", "0")
    own = {"ThrottlingRateLimit": 5, "ThrottlingBurstLimit": 5}
    cloud.http.update_stage(**stack.http, RouteSettings={"GET /version": own})
    assert command.main(["freeze", stack.name]) == 1
    assert "ApiUrl: GET /version has throttling limits" in capsys.readouterr().err
    assert stack.freeze().admitting() == ["ApiUrl", "StreamsUrl"]


@given(
    st.builds(
        Limits,
        st.none() | st.floats(min_value=-1, max_value=1e9).map(lambda rate: round(rate, 3)),
        st.none() | st.integers(min_value=-1, max_value=10**9),
    )
)
def test_a_variable_names_limits(limits: Limits) -> None:
    """In characters that both APIs take (AWS, "UpdateStage"), and it is read as it was written."""
    assert limits_of(str(limits)) == limits
    assert {*str(limits)} <= {*"0123456789.,-none"}


@pytest.mark.parametrize("text", [None, "", "none", "1,2,3", "1.5,2.5", "1e5,2", "a,b", " 1,2"])
def test_what_somebody_else_wrote_into_the_variable_is_ignored(text: str | None) -> None:
    assert limits_of(text) is None
