"""template.yaml agrees with the code it deploys, and grants no more than it needs."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from local.cloudformation import Resolver
from local.http.routes import Router
from local.template_definitions import RouteDefinition
from mlcore.system_tables import landing_objects
from operate import preflight
from tests.arch import project

ROUTER = Router(RouteDefinition(key, function) for key, function in project.routes().items())
TABLE = project.resources("AWS::DynamoDB::Table")["Table"]


FOLDERS = {
    f"{name}Function": folder
    for name, folder in re.findall(
        r"^FOLDER_OF_(\w+) := (\w+)$", (project.FUNCTIONS / "Makefile").read_text(), re.MULTILINE
    )
}
"""Of renamed folders: the logical id stays, so that what is deployed is updated in place."""


def _statements(value: Any) -> Iterator[Any]:
    """Of all conditions of the template."""
    if isinstance(value, dict) and "Effect" in value:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _statements(inner)


STATEMENTS = [
    statement
    for role in project.resources("AWS::IAM::Role").values()
    for statement in _statements(role.get("Policies", ()))
]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_data_outlives_the_stack() -> None:
    table = project.template()["Resources"]["Table"]
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert table["UpdateReplacePolicy"] == "Retain"
    assert "TableName" not in TABLE
    assert TABLE["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert TABLE["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert TABLE["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}


def test_files_are_private_and_outlive_the_stack() -> None:
    bucket = project.template()["Resources"]["ArtifactBucket"]
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert bucket["UpdateReplacePolicy"] == "Retain"
    assert "BucketName" not in bucket["Properties"]
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    assert "BucketEncryption" in bucket["Properties"]
    rule, versions = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert "AbortIncompleteMultipartUpload" in rule
    condition = "HasArtifactVersions"
    assert bucket["Properties"]["VersioningConfiguration"]["Fn::If"][:2] == [
        condition,
        {"Status": "Enabled"},
    ]
    # The rule has no condition: versions of before would otherwise stay, and cost, for ever.
    assert versions["Status"] == "Enabled"
    assert versions["NoncurrentVersionExpiration"] == {
        "NoncurrentDays": {"Fn::If": [condition, {"Ref": "ArtifactVersionDays"}, 1]}
    }
    policy = project.resources("AWS::S3::BucketPolicy")["ArtifactBucketPolicy"]["PolicyDocument"]
    [statement] = policy["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_no_error_is_kept_by_the_distribution() -> None:
    """CloudFront keeps an error for 10 s unless it is told not to, also with CachingDisabled (AWS,
    "Control how long CloudFront caches errors")."""
    distribution = project.resources("AWS::CloudFront::Distribution")["UiDistribution"]
    responses = distribution["DistributionConfig"]["CustomErrorResponses"]
    codes = {400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504}
    assert {error_response["ErrorCode"] for error_response in responses} == codes
    for error_response in responses:
        assert set(error_response) == {"ErrorCode", "ErrorCachingMinTTL"}
        assert error_response["ErrorCachingMinTTL"] == 0


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: str(s["Action"])[:40])
def test_no_role_may_scan_or_reach_everything(statement: dict[str, Any]) -> None:
    for action in _listed(statement["Action"]):
        assert "*" not in action
        assert action not in ("dynamodb:Scan", "dynamodb:DescribeTable")
    assert "*" not in _listed(statement["Resource"])


def test_every_role_may_be_bounded() -> None:
    boundary = {"Ref": "PermissionsBoundaryArn"}
    for name, role in project.resources("AWS::IAM::Role").items():
        wanted = {"Fn::If": ["HasPermissionsBoundary", boundary, {"Ref": "AWS::NoValue"}]}
        assert role["PermissionsBoundary"] == wanted, name


def test_every_function_has_a_role_and_a_log_group_with_retention() -> None:
    groups = project.resources("AWS::Logs::LogGroup")
    for name, function in project.resources("AWS::Serverless::Function").items():
        noun = name.removesuffix("Function")
        assert function["Role"] == {"Fn::GetAtt": [f"{noun}Role", "Arn"]}
        assert function["LoggingConfig"]["LogGroup"] == {"Ref": f"{noun}LogGroup"}
        assert "RetentionInDays" in groups[f"{noun}LogGroup"]
        folder = FOLDERS.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", noun).lower()
        assert function["Handler"] == f"{folder}.app.handler"
        assert (project.FUNCTIONS / folder / "app.py").is_file()


def test_a_block_is_about_its_own_function() -> None:
    """Blocks are written by copying one."""
    for kind, ending, attribute in (
        ("AWS::Lambda::Permission", "Permission", "FunctionName"),
        ("AWS::ApiGatewayV2::Integration", "Integration", "IntegrationUri"),
    ):
        for name, properties in project.resources(kind).items():
            noun = name.removesuffix(ending).removesuffix("Rule").removesuffix("Streams")
            assert properties[attribute] == {"Ref": f"{noun}Function.Alias"}, name
    integrations = project.resources("AWS::ApiGatewayV2::Integration")
    called = {*integrations, "AuthorizerIntegration"}
    # by a schedule
    called |= {"IndexerIntegration", "JudgeRunnerIntegration", "SqlRuleIntegration"}
    called.add("CatalogLoaderRuleIntegration")  # by events of S3
    called |= {"GatewayCallsStreamsIntegration", "AuthorizerStreamsIntegration"}  # by the REST API
    permissions = project.resources("AWS::Lambda::Permission")
    assert {name.replace("Permission", "Integration") for name in permissions} == called


def test_the_audit_of_every_function_of_the_api_is_landed() -> None:
    """Which function answers a request does not matter: whoever it is that is refused."""
    filters = project.resources("AWS::Logs::SubscriptionFilter")
    answering = {
        name.removesuffix("Integration")
        for name in project.resources("AWS::ApiGatewayV2::Integration")
    }
    assert filters.keys() == {f"{noun}Audit" for noun in answering}
    for name, properties in filters.items():
        assert properties["LogGroupName"] == {"Ref": f"{name.removesuffix('Audit')}LogGroup"}
        assert properties["DestinationArn"] == {"Fn::GetAtt": ["AuditDelivery", "Arn"]}
        assert properties["FilterPattern"] == "{ $.audit.outcome = * }"
    [delivery] = project.resources("AWS::KinesisFirehose::DeliveryStream").values()
    target = delivery["ExtendedS3DestinationConfiguration"]
    # The publisher looks into the folders of `landing/`, and knows a kind by the end of a name.
    assert target["Prefix"].startswith("landing/audit-")
    assert target["Prefix"].count("/") == 2
    assert target["FileExtension"] in landing_objects.KINDS
    assert target["CompressionFormat"] == "UNCOMPRESSED", "CloudWatch has compressed it"


MOST_RESOURCES = 500
"""Of a stack (AWS, "CloudFormation quotas")."""


def test_a_stack_has_room_for_its_resources() -> None:
    """SAM makes a version and an alias of each function, and with canaries a deployment group."""
    declared = project.template()["Resources"].values()
    functions = sum(resource["Type"] == "AWS::Serverless::Function" for resource in declared)
    assert len(declared) + 3 * functions + 1 <= MOST_RESOURCES


def test_every_function_is_built_and_published_alike() -> None:
    """With bytecode, and as a version behind the alias that callers go through, anew when anything
    changes."""
    template = project.template()
    shared = template["Globals"]["Function"]
    assert (shared["AutoPublishAlias"], shared["VersionDeletionPolicy"]) == ("live", "Retain")
    for name, function in template["Resources"].items():
        if function["Type"] == "AWS::Serverless::Function":
            assert function["Metadata"] == {"BuildMethod": "makefile"}, name
            assert function["UpdateReplacePolicy"] == "Retain", name
            properties = shared | function["Properties"]
            assert properties["AutoPublishAliasAllProperties"] is True, name
            assert properties["Description"] == {"Fn::Sub": "Settings ${Settings}"}, name
            assert properties["VersionDescription"] == properties["Description"], name
    for kind, attribute in (
        ("AWS::Lambda::EventSourceMapping", "FunctionName"),
        ("AWS::Lambda::Permission", "FunctionName"),
        ("AWS::ApiGatewayV2::Integration", "IntegrationUri"),
    ):
        for name, properties in project.resources(kind).items():
            assert properties[attribute]["Ref"].endswith("Function.Alias"), name


def test_the_settings_change_with_every_parameter_and_all_code() -> None:
    [settings] = project.resources("AWS::AppConfig::HostedConfigurationVersion").values()
    text, named = settings["Content"]["Fn::Sub"]
    declared = project.template()["Parameters"]
    assert re.findall(r"(?<!\S)(\w+)=\$\{\1\}(?!\S)", text) == [
        name for name in declared if name != "DeletionProtection"
    ]
    layers = project.resources("AWS::Serverless::LayerVersion")
    for name in layers:
        assert f"${{{name}}}" in text or name in json.dumps(named), name
    assert layers["RevisionLayer"]["ContentUri"] == "functions"


LONGEST_STACK = "s" * 128
LENGTHS = {
    ("AWS::ApiGateway::Authorizer", "Name"): 128,
    ("AWS::ApiGateway::RestApi", "Name"): 255,
    ("AWS::ApiGatewayV2::Api", "Name"): 128,
    ("AWS::ApiGatewayV2::Authorizer", "Name"): 128,
    ("AWS::AppConfig::Application", "Name"): 64,
    ("AWS::AppConfig::Application", "Description"): 1024,
    ("AWS::AppConfig::ConfigurationProfile", "Name"): 128,
    ("AWS::CloudFront::Distribution", "Comment"): 128,
    ("AWS::CloudFront::Function", "Name"): 64,
    ("AWS::CloudFront::OriginAccessControl", "Description"): 256,
    ("AWS::CloudFront::OriginAccessControl", "Name"): 64,
    ("AWS::CloudFront::ResponseHeadersPolicy", "Comment"): 128,
    ("AWS::CloudFront::ResponseHeadersPolicy", "Name"): 128,
    ("AWS::CloudWatch::Alarm", "AlarmDescription"): 1024,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::Glue::Database", "Name"): 255,
    ("AWS::Glue::Table", "Name"): 255,
    ("AWS::KMS::Key", "Description"): 8192,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::Serverless::LayerVersion", "LayerName"): 140,
}
"""What AWS takes at most. Of names that the stack does not give, CloudFormation takes care."""
OF_THE_ACCOUNT = ("AWS::CloudFront::", "AWS::CloudWatch::Dashboard", "AWS::IAM::", "AWS::S3::")
NAMING = re.compile(r"(?<!Metric)(?<!User)Name$|^Comment$|Description$")


def _named(region: str) -> Iterator[tuple[str, str, str, str]]:
    """Logical id, type, property and value of what a stack with a long name gives a name."""
    resolver = Resolver(
        project.template(),
        parameters={"Authentication": "basic", "Stage": "s" * 20},
        region=region,
        stack=LONGEST_STACK,
    )
    for logical_id, resource in project.template()["Resources"].items():
        properties = resource["Properties"]
        for inner in properties.values():  # CloudFront's are one level down
            if isinstance(inner, dict) and logical_id != "Table":
                properties = {**properties, **inner}
        for name, value in properties.items():
            text = resolver.resolve(value) if NAMING.search(name) else None
            if isinstance(text, str) and LONGEST_STACK in text + LONGEST_STACK * (name == "Name"):
                yield logical_id, resource["Type"], name, text


def test_a_stack_with_a_long_name_keeps_the_limits_of_names() -> None:
    regions = ("ap-northeast-1", "ap-southeast-1")
    by_region = [list(_named(region)) for region in regions]
    assert len(by_region[0]) > 20
    for logical_id, kind, name, text in by_region[0]:
        assert len(text) <= LENGTHS[kind, name], (logical_id, name, text)
    for here, there in zip(*by_region, strict=True):
        if here[1].startswith(OF_THE_ACCOUNT) and here[2] not in ("Comment", "Description"):
            assert here[3] != there[3], here


def _shown(widget: dict[str, Any]) -> Iterator[list[str]]:
    """The metrics of a widget, whose ``...`` stands for all but the end of the one before."""
    before: list[str] = []
    for metric in widget["properties"]["metrics"]:
        names = [part for part in metric if isinstance(part, str)]
        if names[0] == "...":
            names = before[: len(before) - len(names) + 1] + names[1:]
        before = names
        yield names


def test_the_dashboard_shows_every_function() -> None:
    declared = project.resources("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]
    body = Resolver(project.template(), parameters={"Authentication": "basic"}).resolve(declared)
    widgets = json.loads(body)["widgets"]
    assert len(widgets) == 10
    shown = [tuple(names) for widget in widgets for names in _shown(widget)]
    for metric in ("Errors", "Duration", "ConcurrentExecutions"):
        named = [names[3] for names in shown if names[:3] == ("AWS/Lambda", metric, "FunctionName")]
        assert sorted(named) == sorted(project.handlers())


def test_every_output_is_used() -> None:
    documents = [
        (project.ROOT / name).read_text()
        for name in ("README.md", "docs/operations.md", "docs/architecture.md")
    ]
    for name in project.template()["Outputs"]:
        assert any(re.search(rf"\b{name}\b", document) for document in documents), name


STAGES = tomllib.loads((project.ROOT / "samconfig.toml").read_text())


@pytest.mark.parametrize("stage", ["default", "dev", "staging", "prod"])
def test_a_stage_gives_parameters_that_there_are(stage: str) -> None:
    given = STAGES[stage]["deploy"]["parameters"]
    overrides = dict(pair.split("=") for pair in given["parameter_overrides"].split())
    declared = project.template()["Parameters"]
    for name, value in overrides.items():
        assert value in map(str, declared[name].get("AllowedValues", [value])), name
    required = {name for name, parameter in declared.items() if "Default" not in parameter}
    assert required <= set(overrides)
    assert f"stage={overrides['Stage']}" in given["tags"].split()
    protected = overrides["DeletionProtection"] == "true"
    assert protected == (stage == "prod")
    assert stage == "default" or int(overrides["ThrottlingRate"]) > 0
    assert int(overrides.get("ThrottlingBurst", 0)) >= int(overrides.get("ThrottlingRate", 0))
    # New accounts have no concurrency to reserve.
    for name in preflight.RESERVING:
        assert int(overrides.get(name, declared[name]["Default"])) == 0
    assert given.get("confirm_changeset", False) == (stage == "prod")


def test_parameters_are_safe_where_nothing_is_said() -> None:
    declared = project.template()["Parameters"]
    assert "Default" not in declared["Authentication"]
    # A protected table would outlive a failed creation of its stack and block the next one.
    assert declared["DeletionProtection"]["Default"] == "false"
    assert declared["WebhookAllowedSchemes"]["Default"] == "https"
    assert declared["WebhookAllowPrivateAddresses"]["Default"] == "false"
    assert all(
        "Description" in parameter or "AllowedValues" in parameter
        for parameter in declared.values()
    )


@pytest.mark.parametrize(("domain", "method", "path"), sorted(project.rpcs()))
def test_each_rpc_has_a_route_of_its_own_function(domain: str, method: str, path: str) -> None:
    chosen = ROUTER.match(method, re.sub(r"\{\w+\+?\}", "x", path))
    assert chosen is not None
    assert chosen.function == domain


def test_other_paths_end_in_the_catch_all() -> None:
    assert project.routes()["$default"] == "server_info"


def test_no_rpc_is_listed_twice() -> None:
    listed = [(method, path) for _, method, path in project.rpcs()]
    assert len(listed) == len(set(listed))


OPEN_ROUTES = {
    "ANY /login",
    "ANY /login/{proxy+}",
    "ANY /logout",
    "ANY /health",
    "ANY /readyz/{proxy+}",
    "ANY /api/3.0/mlflow/server-info",
    "ANY /ajax-api/3.0/mlflow/server-info",
}


KIND_OF_LOGIN = {"Fn::If": ["HasAuthorizer", "CUSTOM", {"Fn::If": ["HasIam", "AWS_IAM", "NONE"]}]}


def test_every_route_asks_who_calls() -> None:
    """But those that MLflow answers without a login."""
    route_keys = {
        route["RouteKey"]
        for route in project.resources("AWS::ApiGatewayV2::Route").values()
        if route.get("AuthorizationType") == KIND_OF_LOGIN
    }
    assert set(project.routes()) - route_keys == OPEN_ROUTES


def test_a_browser_may_read_files_and_send_parts_of_them() -> None:
    bucket = project.resources("AWS::S3::Bucket")["ArtifactBucket"]
    [rule] = bucket["CorsConfiguration"]["CorsRules"]
    assert {"GET", "HEAD", "PUT"} == set(rule["AllowedMethods"])
    assert "ETag" in rule["ExposedHeaders"]  # a completed upload names the ETag of each part
