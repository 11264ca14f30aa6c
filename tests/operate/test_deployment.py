"""What `make deploy` asks before it creates anything, and how it protects the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

from local.cloudformation import load
from operate import deployment, preflight
from operate.preflight import Plan

SAM = (sys.executable, "-c", "print('SAM CLI, version 1.170.0')")
REGION = "eu-west-1"
LAYER = f"arn:aws:lambda:{REGION}:123456789012:layer:mlflow-scorer-packages:3"


@pytest.fixture
def aws() -> Iterator[Callable[[str], Stubber]]:
    """Makes stubs of AWS's clients, which check each call against the service's own model; every
    planned answer has to be fetched."""
    stubs: dict[str, Stubber] = {}

    def stub(service: str) -> Stubber:
        if service not in stubs:
            stubs[service] = Stubber(
                boto3.client(
                    service,
                    region_name=REGION,
                    aws_access_key_id="x",
                    aws_secret_access_key="x",
                )
            )
            stubs[service].activate()
        return stubs[service]

    yield stub
    for planned in stubs.values():
        planned.assert_no_pending_responses()


class Session:
    region_name = REGION

    def __init__(self, stub: Callable[[str], Stubber]) -> None:
        self._stub = stub

    def client(self, service: str) -> Any:
        return self._stub(service).client


def plan(
    stage: str = "dev",
    deployed: Mapping[str, str] | None = None,
    status: str = "",
    **given: str,
) -> Plan:
    declared = load(deployment.ROOT / "template.yaml")["Parameters"]
    given = {"Authentication": "basic", "Ui": "false", **given}
    return Plan(stage, f"mlflow-{stage}", given, declared, deployed, status)


def account(stub: Callable[[str], Stubber], total: int, free: int) -> Any:
    """Returns a maker of clients for an account with a quota of concurrent executions."""
    stub("sts").add_response(
        "get_caller_identity", {"Arn": "arn:aws:iam::1:user/ada", "Account": "1", "UserId": "u"}
    )
    stub("lambda").add_response(
        "get_account_settings",
        {"AccountLimit": {"ConcurrentExecutions": total, "UnreservedConcurrentExecutions": free}},
    )
    return Session(stub).client


def missing(plan: Plan, client: Any, region: str | None = REGION) -> list[str]:
    return [
        f"{what}: {detail}"
        for what, state, detail in preflight.examine(plan, client, region, SAM)
        if state == "missing"
    ]


@pytest.mark.parametrize("stage", ["dev", "staging"])
def test_a_new_account_can_deploy_a_stage(aws: Any, stage: str) -> None:
    assert missing(plan(stage), account(aws, 10, 10)) == []


def test_reserving_what_the_account_lacks_is_refused_before_anything_is_made(aws: Any) -> None:
    [line] = missing(
        plan(AuthorizerConcurrency="200", IndexerConcurrency="50"), account(aws, 300, 300)
    )
    assert "reserve 250 of 300" in line
    assert "would leave 50" in line


def test_what_the_stack_has_reserved_already_counts_as_free(aws: Any) -> None:
    before = {"AuthorizerConcurrency": "200", "IndexerConcurrency": "50"}
    again = plan(deployed=before, status="UPDATE_COMPLETE", **before)
    assert missing(again, account(aws, 350, 100)) == []


def test_parameters_that_are_not_set_keep_the_stacks_values(aws: Any) -> None:
    before = {"AuthorizerConcurrency": "200"}
    assert plan(deployed=before).value("AuthorizerConcurrency") == "200"
    assert plan(deployed=before, AuthorizerConcurrency="0").value("AuthorizerConcurrency") == "0"
    assert plan().value("AuthorizerConcurrency") == "0"


@pytest.mark.parametrize("status", [*preflight.UNREADY, "UPDATE_IN_PROGRESS"])
def test_a_stack_that_cannot_be_updated(aws: Any, status: str) -> None:
    [line] = missing(plan(status=status), account(aws, 1000, 1000))
    assert status in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Authentication": ""}, "set Authentication=basic"),
        (
            {
                "IamUsers": ",".join(
                    f"arn:aws:iam::123456789012:user/{n}=user-{n}" for n in range(80)
                )
            },
            "iam_users",
        ),
        ({"Autentication": "basic"}, "no parameter Autentication"),
        ({"UiCertificateArn": f"arn:aws:acm:{REGION}:1:certificate/x"}, "us-east-1"),
        ({"ApiCertificateArn": "arn:aws:acm:us-east-1:1:certificate/x"}, REGION),
        ({"CodeScorers": "true", "CodeScorerPackages": "numpy"}, "CodeScorerLayerArn"),
    ],
)
def test_parameters_that_would_fail(aws: Any, given: dict[str, Any], words: str) -> None:
    [line] = missing(plan(**given), account(aws, 1000, 1000))
    assert words in line


def test_nothing_is_asked_without_a_region_and_little_without_credentials(aws: Any) -> None:
    [line] = missing(plan(), None, None)
    assert "AWS_DEFAULT_REGION" in line

    class Nobody:
        def get_caller_identity(self) -> Any:
            raise NoCredentialsError

    [line] = missing(plan(), lambda _: Nobody())
    assert line.startswith("credentials")


def test_a_role_that_may_not_look_may_deploy(aws: Any) -> None:
    aws("sts").add_response(
        "get_caller_identity", {"Arn": "arn:aws:iam::1:user/ada", "Account": "1", "UserId": "u"}
    )
    aws("lambda").add_client_error("get_account_settings", "AccessDeniedException")
    aws("cloudfront").add_client_error("list_distributions", "AccessDenied")
    findings = preflight.examine(plan(Ui="true"), Session(aws).client, REGION, SAM)
    assert [finding.subject for finding in findings if finding.state == "missing"] == []
    notes = [
        f.subject for f in findings if f.state == "note" and "could not be checked" in f.detail
    ]
    assert notes == ["Lambda", "CloudFront"]


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ({"CompatibleArchitectures": ["arm64"], "CompatibleRuntimes": ["python3.13"]}, None),
        ({}, None),
        ({"CompatibleArchitectures": ["x86_64"]}, "is for x86_64, not for arm64"),
        ({"CompatibleRuntimes": ["python3.12"]}, "is for python3.12, not for python3.13"),
    ],
)
def test_a_layer_of_scorers_runs_on_the_functions_processor(
    aws: Any, layer: dict[str, Any], words: str | None
) -> None:
    client = account(aws, 1000, 1000)
    aws("lambda").add_response("get_layer_version_by_arn", layer, {"Arn": LAYER})
    given: dict[str, Any] = {
        "CodeScorers": "true",
        "CodeScorerLayerArn": LAYER,
        "CodeScorerPackages": "numpy",
    }
    found = missing(plan(**given), client)
    assert found == [] if words is None else words in found[0]


def test_the_first_distribution_of_an_account(aws: Any) -> None:
    for number, state in ((0, "note"), (1, "ok")):
        client = account(aws, 1000, 1000)
        answer = {
            "Marker": "",
            "MaxItems": 1,
            "IsTruncated": False,
            "Quantity": number,
        }
        aws("cloudfront").add_response("list_distributions", {"DistributionList": answer})
        *_, last = preflight.examine(plan(Ui="true"), client, REGION, SAM)
        assert (last.subject, last.state) == ("CloudFront", state)


def test_old_tools_are_told() -> None:
    for command in ([sys.executable, "-c", "print('SAM CLI, version 1.9.0')"], ["/no/sam"]):
        first, *_ = preflight.examine(plan(), boto3.client, None, command)
        assert (first.subject, first.state) == ("SAM CLI", "missing")


def stack(status: str, protected: str) -> dict[str, Any]:
    return {
        "Stacks": [
            {
                "StackName": "mlflow-prod",
                "CreationTime": "2026-01-01T00:00:00Z",
                "StackStatus": status,
                "Parameters": [
                    {"ParameterKey": "Stage", "ParameterValue": "prod"},
                    {"ParameterKey": "DeletionProtection", "ParameterValue": protected},
                ],
            }
        ]
    }


PROTECTING = {
    "StackName": "mlflow-prod",
    "UsePreviousTemplate": True,
    "Parameters": [
        {"ParameterKey": "Stage", "UsePreviousValue": True},
        {"ParameterKey": "DeletionProtection", "ParameterValue": "true"},
    ],
    "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
}


def deploy(aws: Any, tmp_path: Path, status: str, code: int = 0) -> tuple[int, str]:
    """Deploys prod with a SAM CLI that writes down its arguments; returns its code and them."""
    written = tmp_path / "arguments"
    program = f"import sys; open({str(written)!r}, 'w').write(' '.join(sys.argv)); sys.exit({code})"
    wanted = plan("prod", status=status, DeletionProtection="true")
    ended = deployment.deploy(wanted, Session(aws), [sys.executable, "-c", program], ["--debug"])
    return ended, written.read_text()


@pytest.mark.parametrize("status", deployment.UNMADE)
def test_a_table_is_protected_once_its_stack_stands(aws: Any, tmp_path: Path, status: str) -> None:
    """A protected table would stay when the creation fails, and so would the stack."""
    formation = aws("cloudformation")
    formation.add_response("describe_stacks", stack("CREATE_COMPLETE", "false"))
    formation.add_response("update_stack", {"StackId": "s" * 20}, PROTECTING)
    formation.add_response("describe_stacks", stack("UPDATE_COMPLETE", "true"))
    ended, arguments = deploy(aws, tmp_path, status)
    assert ended == 0
    assert 'DeletionProtection="false"' in arguments
    assert "--config-env prod --stack-name mlflow-prod" in arguments
    assert "--debug" in arguments


def test_a_stack_that_exists_is_deployed_as_it_is_described(aws: Any, tmp_path: Path) -> None:
    ended, arguments = deploy(aws, tmp_path, "UPDATE_COMPLETE")
    assert ended == 0
    assert 'DeletionProtection="true"' in arguments


def test_nothing_is_protected_when_nothing_was_made(aws: Any, tmp_path: Path) -> None:
    assert deploy(aws, tmp_path, "", code=3)[0] == 3
    # The change set of a new stack was not confirmed.
    aws("cloudformation").add_response("describe_stacks", stack("REVIEW_IN_PROGRESS", "false"))
    assert deploy(aws, tmp_path, "")[0] == 0


def test_a_stack_that_cannot_be_deployed_is_named_before(aws: Any) -> None:
    for status in ("CREATE_FAILED", "IMPORT_ROLLBACK_FAILED", "ROLLBACK_FAILED", "DELETE_FAILED"):
        [line] = missing(plan(status=status, deployed={}), account(aws, 1000, 1000))
        assert status in line
    # After these the stack is as it was before.
    for status in ("IMPORT_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"):
        assert missing(plan(status=status, deployed={}), account(aws, 1000, 1000)) == []


def test_a_stage_and_further_parameters(aws: Any) -> None:
    aws("cloudformation").add_client_error("describe_stacks", "ValidationError", "does not exist")
    made = deployment.plan_of("prod", None, ["Canary=false", "LogLevel=WARN"], Session(aws))
    assert (made.stack, made.status, made.deployed) == ("mlflow-prod", "", None)
    assert made.given["DeletionProtection"] == "true"
    assert (made.given["Canary"], made.given["LogLevel"]) == ("false", "WARN")
    aws("cloudformation").add_response("describe_stacks", stack("CREATE_COMPLETE", "true"))
    made = deployment.plan_of("prod", "other", [], Session(aws))
    assert (made.stack, made.status) == ("other", "CREATE_COMPLETE")
    assert made.value("Stage") == "prod"
    with pytest.raises(LookupError, match="no stage"):
        deployment.plan_of("production", None, [], Session(aws))
    with pytest.raises(LookupError, match="NAME=VALUE"):
        deployment.plan_of("prod", None, ["Canary"], Session(aws))
