"""What a checkup learns of a deployment that cannot reach this machine, and of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import boto3
import pytest
from botocore.stub import ANY, Stubber

from operate.doctor import command
from operate.doctor.api import Api, ApiAnswer, Login
from operate.doctor.checkup_state import Checkup, Options
from operate.doctor.outcome import WRONG, LeftOut, Wrong
from operate.doctor.stack import Deployment
from operate.doctor.steps import Step, alarms, backups, experiments, webhooks
from tests.engines import ROOT

URL = "https://d111.cloudfront.net"
GROUP = "/aws/lambda/mlflow-dev-webhook-sender"
TEST = {"result": {"success": False, "response_status": 404, "response_body": "…"}}


class Server(Api):
    """Answers each call as it is told, and keeps what it was asked."""

    def __init__(self, answers: Mapping[str, tuple[int, Any]]) -> None:
        super().__init__(URL, Login())
        self.answers = answers
        self.asked: list[tuple[str, str, Any]] = []

    def call(self, method: str, path: str, body: Any = None, **_: Any) -> ApiAnswer:
        self.asked.append((method, path, body))
        status, content = self.answers.get(f"{method} {path.partition('/mlflow/')[2]}", (200, {}))
        return ApiAnswer(status, {}, json.dumps(content).encode())


class Alarms:
    """A stack with one alarm, which notifies a topic."""

    topic = "arn:aws:sns:eu-west-1:123456789012:mlflow-dev-alarms"

    def __init__(self, subscription: str) -> None:
        made = {
            name: boto3.client(
                name, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
            )
            for name in ("cloudwatch", "sns")
        }
        self.client = made.__getitem__
        alarm = {"AlarmName": "lag", "StateValue": "OK", "AlarmActions": [self.topic]}
        receiver = {"SubscriptionArn": subscription, "Endpoint": "ops@example.com"}
        for name, answer in (
            ("cloudwatch", ("describe_alarms", {"MetricAlarms": [alarm]})),
            ("sns", ("list_subscriptions_by_topic", {"Subscriptions": [receiver]})),
        ):
            stub = Stubber(made[name])
            stub.add_response(*answer)
            stub.activate()

    def ids(self, _: str) -> dict[str, str]:
        return {"LagAlarm": "lag"}


class Logs:
    """A stack whose only client is a stub of CloudWatch Logs."""

    stack = "mlflow-dev"
    resources = {"WebhookSenderLogGroup": ("AWS::Logs::LogGroup", GROUP)}

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.parameters = parameters
        self.logs = boto3.client(
            "logs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        self.stub = Stubber(self.logs)
        self.stub.activate()

    def client(self, service: str) -> Any:
        assert service == "logs"
        return self.logs

    def will_have(self, *lines: Mapping[str, Any]) -> None:
        self.stub.add_response(
            "filter_log_events",
            {"events": [{"message": json.dumps(line)} for line in lines]},
            {"logGroupName": GROUP, "startTime": ANY, "filterPattern": '"7"'},
        )


def checkup(
    server: Server, stack: Logs | Alarms | None, patience: float = 30, **given: str
) -> Checkup:
    receiver, url = given.get("receiver"), given.get("receiver_url")
    options = Options(None, receiver, url, None, patience)
    made = Checkup(server, cast("Deployment | None", stack), options)
    made.facts["model"] = "doctors"
    return made


@pytest.fixture
def stack() -> Iterator[Logs]:
    logs = Logs({"LogLevel": "INFO"})
    yield logs
    logs.stub.assert_no_pending_responses()


def server(**answers: tuple[int, Any]) -> Server:
    default = {
        "POST webhooks": (200, {"webhook": {"webhook_id": "7"}}),
        "POST webhooks/7/test": (200, TEST),
    }
    return Server({**default, **answers})


def line(message: str, **more: str) -> dict[str, str]:
    return {"level": "INFO", "message": message, "webhook_id": "7", **more}


def test_the_senders_words() -> None:
    source = (ROOT / "functions" / "webhook_sender" / "app.py").read_text()
    assert all(f'"{words}"' in source for words in (*webhooks.SENT, webhooks.FAILED))


@pytest.mark.parametrize("message", webhooks.SENT)
def test_a_delivery_that_the_sender_logs(stack: Logs, message: str, no_pause: None) -> None:
    api = server()
    stack.will_have()
    stack.will_have(line("webhook delivered") | {"webhook_id": "8"}, line(webhooks.FAILED))
    stack.will_have(line(webhooks.FAILED), line(message))
    state = checkup(api, stack)
    assert "itself" in webhooks.receive(state)
    created = next(body for _, path, body in api.asked if path.endswith("/webhooks"))
    assert created["url"] == f"{URL}/health"
    assert [made.name for made in state.made] == ["the webhook"]


def test_a_delivery_that_is_never_sent(stack: Logs) -> None:
    stack.will_have(line(webhooks.FAILED, reason="ConnectTimeoutError"))
    with pytest.raises(Wrong, match=r"not after .* it could not deliver: ConnectTimeoutError"):
        webhooks.receive(checkup(server(), stack, patience=-1))


def test_functions_that_reach_nobody(stack: Logs) -> None:
    failed = {"result": {"success": False, "error_message": "Failed to test webhook: timed out"}}
    api = server(**{"POST webhooks/7/test": (200, failed)})
    with pytest.raises(Wrong, match=r"cannot reach d111\.cloudfront\.net.*NAT.*timed out"):
        webhooks.receive(checkup(api, stack))


def test_a_sender_that_does_not_say() -> None:
    quiet = Logs({"LogLevel": "ERROR"})
    with pytest.raises(LeftOut, match="LogLevel is ERROR"):
        webhooks.receive(checkup(server(), quiet))


def test_nothing_to_see_a_delivery_by() -> None:
    with pytest.raises(LeftOut, match=r"--stack.*--receiver"):
        webhooks.receive(checkup(server(), None))


def test_a_tunnel_is_what_the_webhook_names() -> None:
    api = server()
    given = {"receiver": "127.0.0.1:0", "receiver_url": "https://tunnel.example/doctor"}
    with pytest.raises(Wrong, match="the delivery arrives"):
        webhooks.receive(checkup(api, None, patience=-1, **given))
    created = next(body for _, path, body in api.asked if path.endswith("/webhooks"))
    assert created["url"] == "https://tunnel.example/doctor"


def test_an_address_that_this_machine_does_not_have() -> None:
    state = checkup(server(), None, receiver="192.0.2.1:80")  # an address of documentation
    outcome = command._taken(Step("webhook", 1, webhooks.receive), state)
    assert outcome.status == WRONG
    assert outcome.detail.startswith("on this machine: ")


def test_an_error_that_is_kept_for_the_next_caller() -> None:
    """As a cache of errors in front of the server does: the name that was missing stays missing."""
    path = "GET experiments/get-by-name"
    made = {"POST experiments/create": (200, {"experiment_id": "1"})}
    with pytest.raises(Wrong, match="get-by-name: 404"):
        experiments.create(checkup(Server({**made, path: (404, {})}), None))


TABLE_ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/t"
REPLICA = "arn:aws:s3:::mlflow-replica"
COPIED = {"ReplicaVaultArn": "arn:…:replica", "ReplicaBucketArn": REPLICA}


class Backups:
    """A stack whose table and files may have copies in another region."""

    outputs = {"TableName": "t", "ArtifactBucketName": "b"}

    def __init__(self, parameters: Mapping[str, str], copies: list[str], replica: str) -> None:
        self.parameters = parameters
        made = {
            name: boto3.client(
                name, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
            )
            for name in ("dynamodb", "s3", "backup")
        }
        self.client = made.__getitem__
        recovery = {"PointInTimeRecoveryStatus": "ENABLED"}
        continuous = {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
        dynamodb, s3, backup = (Stubber(client) for client in made.values())
        dynamodb.add_response(
            "describe_continuous_backups", {"ContinuousBackupsDescription": continuous}
        )
        s3.add_response("get_bucket_versioning", {"Status": "Enabled"}, {"Bucket": "b"})
        if parameters:
            dynamodb.add_response("describe_table", {"Table": {"TableArn": TABLE_ARN}})
            jobs = [
                {"State": state, "CreationDate": datetime(2026, 1, day, tzinfo=UTC)}
                for day, state in enumerate(copies, start=1)
            ]
            backup.add_response("list_copy_jobs", {"CopyJobs": jobs}, {"ByResourceArn": TABLE_ARN})
            if replica:
                rule = {"Status": "Enabled", "Destination": {"Bucket": replica}}
                s3.add_response(
                    "get_bucket_replication",
                    {"ReplicationConfiguration": {"Role": "r", "Rules": [rule]}},
                    {"Bucket": "b"},
                )
            else:
                s3.add_client_error(
                    "get_bucket_replication", "ReplicationConfigurationNotFoundError"
                )
        for stub in (dynamodb, s3, backup):
            stub.activate()


@pytest.mark.parametrize(
    ("parameters", "copies", "replica", "text"),
    [
        ({}, [], "", "in another region: none"),
        (COPIED, [], REPLICA, f"table, no copy yet; files, {REPLICA}"),
        (COPIED, ["FAILED", "COMPLETED", "RUNNING"], REPLICA, "last copy 2026-01-02 00:00 UTC"),
    ],
)
def test_backups_in_another_region(
    parameters: dict[str, str], copies: list[str], replica: str, text: str
) -> None:
    stack = cast("Alarms", Backups(parameters, copies, replica))
    assert text in backups.read(checkup(server(), stack))


@pytest.mark.parametrize(
    ("copies", "replica", "wrong"),
    [
        (["COMPLETED", "FAILED"], REPLICA, "the last copy of the table is FAILED"),
        (["COMPLETED"], "", "b is not copied to"),
        (["COMPLETED"], "arn:aws:s3:::other", "b is not copied to"),
    ],
)
def test_backups_that_are_not_copied(copies: list[str], replica: str, wrong: str) -> None:
    with pytest.raises(Wrong, match=wrong):
        backups.read(checkup(server(), cast("Alarms", Backups(COPIED, copies, replica))))


def test_alarms_whose_receiver_has_not_confirmed() -> None:
    with pytest.raises(Wrong, match=r"do not reach \['ops@example\.com'\]: confirm"):
        alarms.read(checkup(server(), Alarms("PendingConfirmation")))
    confirmed = Alarms(f"{Alarms.topic}:0a1b")
    assert alarms.read(checkup(server(), confirmed)) == "none of 1 alarms rings"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operate.doctor.checkup_state.PAUSE_SECONDS", 0)
