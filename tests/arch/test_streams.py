"""The REST API of streams: it streams, asks who calls as the HTTP API does, and starts the runtime
that can stream."""

from __future__ import annotations

import os
from typing import Any

import pytest

from local.cloudformation import Resolver
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER
from tests.arch import project

RESOURCES = project.template()["Resources"]
LONGEST_MS = 15 * 60 * 1000
MODES = {"basic": "CUSTOM", "oidc": "CUSTOM", "iam": "AWS_IAM", "none": "NONE"}


def resolver(**parameters: str) -> Resolver:
    return Resolver(project.template(), parameters={"Authentication": "basic", **parameters})


def properties(name: str, **parameters: str) -> Any:
    return resolver(**parameters).resolve(RESOURCES[name]["Properties"])


def test_answers_are_streamed_for_as_long_as_the_function_runs() -> None:
    integration = properties("StreamsCallMethod")["Integration"]
    assert integration["ResponseTransferMode"] == "STREAM"
    assert (integration["Type"], integration["IntegrationHttpMethod"]) == ("AWS_PROXY", "POST")
    declared = RESOURCES["StreamsCallMethod"]["Properties"]["Integration"]["Uri"]["Fn::Sub"]
    assert declared[0].endswith(
        ":lambda:path/2021-11-15/functions/${Alias}/response-streaming-invocations"
    )
    assert declared[1] == {"Alias": {"Ref": "GatewayCallsFunction.Alias"}}
    assert integration["TimeoutInMillis"] == LONGEST_MS
    assert properties("GatewayCallsFunction")["Timeout"] * 1000 == LONGEST_MS


def test_bodies_are_not_decoded() -> None:
    """A compressed body that was taken for a text would be lost."""
    assert properties("Streams")["BinaryMediaTypes"] == ["*/*"]


@pytest.mark.parametrize(("mode", "kind"), MODES.items())
def test_callers_are_asked_as_by_the_http_api(mode: str, kind: str) -> None:
    method = properties("StreamsCallMethod", Authentication=mode)
    route = properties("GatewayCallsRoute", Authentication=mode)
    assert method["AuthorizationType"] == route["AuthorizationType"] == kind
    assert ("AuthorizerId" in method) == ("AuthorizerId" in route) == (kind == "CUSTOM")


@pytest.mark.parametrize(("mode", "kind"), MODES.items())
def test_another_kind_of_login_is_another_deployment(mode: str, kind: str) -> None:
    """CloudFormation makes a deployment once; it would keep the login of the day it was made."""
    given = resolver(Authentication=mode)
    made = [
        name
        for name, resource in RESOURCES.items()
        if resource["Type"] == "AWS::ApiGateway::Deployment"
        and given.condition(resource["Condition"])
    ]
    names = {
        "CUSTOM": "StreamsLoginDeployment",
        "AWS_IAM": "StreamsSignedDeployment",
        "NONE": "StreamsOpenDeployment",
    }
    assert made == [names[kind]]
    assert RESOURCES[made[0]]["DependsOn"] == "StreamsCallMethod"
    stage = RESOURCES["StreamsStage"]["Properties"]["DeploymentId"]
    assert stage == {
        "Fn::If": [
            "HasAuthorizer",
            {"Ref": names["CUSTOM"]},
            {"Fn::If": ["HasIam", {"Ref": names["AWS_IAM"]}, {"Ref": names["NONE"]}]},
        ]
    }


def test_an_authorizers_answer_is_not_kept() -> None:
    """An answer that was kept would hold for other requests, of other users."""
    authorizer = properties("StreamsAuthorizer")
    assert authorizer["AuthorizerResultTtlInSeconds"] == 0
    assert authorizer["Type"] == "REQUEST"


def test_the_function_starts_the_runtime_that_streams() -> None:
    variables = properties("GatewayCallsFunction")["Environment"]["Variables"]
    folder, _, name = variables["AWS_LAMBDA_EXEC_WRAPPER"].removeprefix("/var/task/").partition("/")
    wrapper = project.FUNCTIONS / folder / name
    assert os.access(wrapper, os.X_OK)
    module = wrapper.read_text().split()[-1]
    assert (project.FUNCTIONS / f"{module.replace('.', '/')}.py").is_file()


def test_the_distribution_passes_calls_on_to_the_streams() -> None:
    config = properties("UiDistribution", Ui="true")["DistributionConfig"]
    origins = {origin["Id"]: origin for origin in config["Origins"]}
    [behaviour] = [
        cache_behavior
        for cache_behavior in config["CacheBehaviors"]
        if cache_behavior["TargetOriginId"] == "streams"
    ]
    assert behaviour["PathPattern"] == "/gateway/*"
    assert behaviour["Compress"] is False, "a compressed part waits for the next one"
    assert origins["streams"]["OriginCustomHeaders"] == origins["api"]["OriginCustomHeaders"]
    assert origins["streams"]["OriginCustomHeaders"][0]["HeaderName"] == ORIGIN_HEADER
    assert RESOURCES["StreamsStage"]["Properties"]["StageName"] == "live"
    path = project.template()["Resources"]["UiDistribution"]["Properties"]["DistributionConfig"]
    [origin] = [candidate for candidate in path["Origins"] if candidate["Id"] == "streams"]
    assert origin["OriginPath"] == {"Fn::Sub": "/${StreamsStage}"}


def test_the_alarm_watches_the_api_by_its_name() -> None:
    [dimension] = properties("StreamsErrorAlarm")["Dimensions"]
    assert dimension == {"Name": "ApiName", "Value": properties("Streams")["Name"]}
