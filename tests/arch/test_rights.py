"""Each function's role allows what its code can call, and nothing else."""

from __future__ import annotations

import pytest

from mlcore.db import keys
from mlcore.db.keys import PATTERNS
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID, DEFAULT_EXPERIMENT_NAME
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.gateway import secret_values as gateway_secrets
from mlcore.webhooks import secret_values as webhook_secrets
from tests.arch import grants, project, rights
from tests.arch.grants import BASIC, IAM, OIDC, ROLES, statements
from tests.arch.rights import Right

BY_ISSUERS = ("authorizer.oidc_authentication", "authorizer.session_authentication")
NOT_RUN = {
    BASIC: (rights.SIGNERS, *BY_ISSUERS),
    IAM: BY_ISSUERS,
    OIDC: (rights.SIGNERS, "authorizer.basic_authentication"),
}
"""By the way to log in, what the others run alone."""

LISTING = ("UiRole",)
"""Roles that list files of users, and read none."""

STREAM = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}
MESSAGES = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}

FUNCTIONS = project.handlers()


def _of_lambda(noun: str) -> set[Right]:
    """What Lambda itself does in the name of a function: logs, and reading what triggers it."""
    group = f"{noun}LogGroup"
    results = {(action, group) for action in ("logs:CreateLogStream", "logs:PutLogEvents")}
    for mapping in project.resources("AWS::Lambda::EventSourceMapping").values():
        if mapping["FunctionName"] != {"Ref": f"{noun}Function.Alias"}:
            continue
        source, attribute = mapping["EventSourceArn"]["Fn::GetAtt"]
        if attribute == "StreamArn":
            results |= {(action, f"{source}.StreamArn") for action in STREAM}
            results.add(("dynamodb:ListStreams", f"{source}/stream/*"))
            failures = mapping["DestinationConfig"]["OnFailure"]["Destination"]
            results.add(("sqs:SendMessage", failures["Fn::GetAtt"][0]))
        else:
            results |= {(action, source) for action in MESSAGES}
    return results


@pytest.mark.parametrize("condition", NOT_RUN)
@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_a_role_allows_what_the_code_calls(function: str, condition: str) -> None:
    noun = function.removesuffix("Function")
    called = rights.of(FUNCTIONS[function], *NOT_RUN[condition]) | _of_lambda(noun)
    granted = grants.of(f"{noun}Role", condition)
    assert called - granted == set(), "missing"
    assert granted - called == set(), "surplus"


def test_partitions_that_a_role_is_bound_to_are_in_the_table() -> None:
    beginnings = {pattern.pk.text.partition("<")[0] for pattern in PATTERNS.values()}
    bounds = [
        statement["Condition"]
        for role in ROLES
        for condition in NOT_RUN
        for statement in statements(role, condition)
        if "dynamodb:LeadingKeys" in str(statement.get("Condition"))
    ]
    assert bounds
    for bound in bounds:
        [(operator, values)] = bound.items()
        assert operator in ("ForAllValues:StringLike", "ForAllValues:StringEquals")
        for key in values["dynamodb:LeadingKeys"]:
            assert key.startswith(tuple(beginnings)), key


def test_every_function_of_the_api_may_count_callers() -> None:
    """In the partitions of the counters: the comparison of all roles does not look at bounds."""
    wanted = {"dynamodb:BatchGetItem", "dynamodb:UpdateItem"}
    nouns = {
        integration["IntegrationUri"]["Ref"].removesuffix("Function.Alias")
        for integration in project.resources("AWS::ApiGatewayV2::Integration").values()
    } - {"Signin"}  # its paths are public
    assert len(nouns) > 15
    for noun in nouns:
        allowed = set()
        for statement in statements(f"{noun}Role", BASIC):
            bound = statement.get("Condition", {}).get("ForAllValues:StringLike")
            keys_allowed = ["CALLERUSAGE#*"] if bound is None else bound["dynamodb:LeadingKeys"]
            if "CALLERUSAGE#*" in keys_allowed:
                actions = statement["Action"]
                allowed |= {actions} if isinstance(actions, str) else set(actions)
        assert wanted <= allowed, noun


def test_only_the_demo_of_signed_callers_writes_and_only_their_user() -> None:
    [written] = [
        statement
        for statement in statements("DemoRole", IAM)
        if "dynamodb:PutItem" in statement["Action"]
    ]
    [bound] = written["Condition"].values()
    assert bound["dynamodb:LeadingKeys"] == ["USER#*", "USERS", "COUNTERS"]


def test_the_function_of_artifacts_may_not_touch_what_the_product_keeps_for_itself() -> None:
    """Whatever path a request spells."""
    denied = [
        statement
        for statement in statements("ArtifactsRole", BASIC)
        if statement["Effect"] == "Deny"
    ]
    allowed = {
        action for action, resource in grants.of("ArtifactsRole") if resource == rights.FILES
    }
    [files, listing] = denied
    assert files["Resource"] == {"Fn::Sub": "${ArtifactBucket.Arn}/.internal/*"}
    assert set(files["Action"]) == allowed
    assert listing["Action"] == "s3:ListBucket"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ".internal/*"}}


def test_who_reads_the_products_own_files_alone_lists_no_others() -> None:
    bucket = {"Fn::GetAtt": ["ArtifactBucket", "Arn"]}
    for role in ROLES:
        others = {(action, rights.FILES) for action in ("s3:GetObject", "s3:DeleteObject")}
        lists_others = bool(others & grants.of(role)) or role in LISTING
        for statement in statements(role, BASIC):
            if (statement["Action"], statement["Resource"]) == ("s3:ListBucket", bucket):
                bounded = "Condition" in statement and statement["Effect"] == "Allow"
                assert bounded != lists_others, role


def test_the_key_of_secrets_opens_for_each_function_what_it_is_for() -> None:
    """A secret is bound to what it belongs to, and a role to one kind of it."""
    kinds = {"Webhooks": "webhook_id", "WebhookSender": "webhook_id", "Workspaces": "webhook_id"}
    kinds |= dict.fromkeys(("Gateway", "GatewayCalls", "JudgeRunner"), "gateway_secret_id") | {
        "Signin": "session_key"
    }
    results = {
        role.removesuffix("Role"): statement["Condition"]
        for role in ROLES
        for statement in statements(role, BASIC)
        if "kms:" in str(statement["Action"])
    }
    assert results == {
        noun: {"ForAnyValue:StringEquals": {"kms:EncryptionContextKeys": [kind]}}
        for noun, kind in kinds.items()
    }
    assert "webhook_id" in webhook_secrets._encryption_context("w", "h")
    assert "gateway_secret_id" in gateway_secrets._encryption_context("s")


def test_the_ui_makes_the_default_experiment_and_no_other() -> None:
    made = {
        keys.experiment(DEFAULT_EXPERIMENT_ID).pk,
        keys.experiment_name_lock(DEFAULT_WORKSPACE, DEFAULT_EXPERIMENT_NAME).pk,
    }
    [written] = [
        statement
        for statement in statements("UiRole", BASIC)
        if "dynamodb:PutItem" in statement["Action"]
    ]
    [bound] = written["Condition"].values()
    assert set(bound["dynamodb:LeadingKeys"]) == made


def test_the_loader_of_the_catalog_reads_the_one_secret_that_it_is_given() -> None:
    """None where none is given, which the test of all roles looks at."""
    given = grants.of("CatalogLoaderRole", "HasCatalogSecret") - grants.of("CatalogLoaderRole")
    assert given == {("secretsmanager:GetSecretValue", "${CatalogSecretArn}")}


def test_who_calls_models_calls_those_of_bedrock_that_are_listed() -> None:
    """None where none is, which the test of all roles looks at; and only where the code that signs
    for Bedrock is."""
    signing = {
        f"{function.removesuffix('Function')}Role"
        for function, domain in FUNCTIONS.items()
        if rights.signs(domain)
    }
    assert signing == {"GatewayCallsRole", "JudgeRunnerRole"}
    for role in ROLES:
        given = grants.of(role, "HasBedrockModels") - grants.of(role)
        assert given == {
            (f"bedrock:{action}", "${BedrockModelArns}")
            for action in ("InvokeModel", "InvokeModelWithResponseStream", "CountTokens")
            if role in signing
        }


def test_the_backfill_may_read_the_table_and_land() -> None:
    """As somebody of this account; no function has its role."""
    role = project.resources("AWS::IAM::Role")["SystemTablesBackfillRole"]
    [trusted] = role["AssumeRolePolicyDocument"]["Statement"]
    account = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
    assert trusted["Principal"] == {"AWS": account}
    journal = ("s3:PutObject", f"{rights.TABLES}/landing/backfill.json")
    called, granted = rights.of_backfill(), grants.of("SystemTablesBackfillRole")
    assert granted == called - {journal}
    assert journal in called
    assert ("s3:PutObject", f"{rights.TABLES}/landing/*") in granted, "which the journal is in"


def test_roles_have_no_policies_but_their_own() -> None:
    """But the network interfaces of a VPC and the traces of X-Ray, whose actions know no resource;
    of both where they are asked for."""
    allowed = [
        {"Fn::If": [condition, {"Fn::Sub": f"{beginning}/{name}"}, {"Ref": "AWS::NoValue"}]}
        for beginning in ["arn:${AWS::Partition}:iam::aws:policy"]
        for condition, name in (
            ("HasVpc", "service-role/AWSLambdaENIManagementAccess"),
            ("HasTracing", "AWSXRayDaemonWriteAccess"),
        )
    ]
    for role in ROLES.values():
        assert role["ManagedPolicyArns"] == allowed
    assert project.resources("AWS::IAM::ManagedPolicy") == {}


def test_what_is_read_of_code_is_what_python_runs() -> None:
    """Through imports inside functions, objects that keep a module, and policies of routes."""
    assert ("dynamodb:UpdateItem", "Table") in rights.of(
        "authorizer", "authorizer.oidc_authentication"
    )
    assert ("dynamodb:PutItem", "Table") not in rights.of(
        "authorizer", "authorizer.oidc_authentication"
    )
    counting = {(f"dynamodb:{call}", "Table") for call in ("BatchGetItem", "Query", "UpdateItem")}
    assert rights.of("server_info", rights.SIGNERS) == {("dynamodb:GetItem", "Table"), *counting}
    assert ("dynamodb:Query", "Table/index/LSI5") in rights.of("logged_models")
    assert ("dynamodb:Query", "Table/index/LSI5") not in rights.of("experiments")
