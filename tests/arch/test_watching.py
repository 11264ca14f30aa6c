"""What the template watches, and what it bounds."""

from __future__ import annotations

import json
import re

import pytest

from local.cloudformation import Resolver
from mlcore import observability
from publisher import app as publisher
from tests.arch import project

TABLE = project.resources("AWS::DynamoDB::Table")["Table"]
CONSUMERS = ("Indexer", "WebhookSender", "FileRemover", "JudgeRunner", "Lander", "Publisher")


def test_alarms_watch_what_no_caller_sees() -> None:
    """Errors of the functions that nobody calls, which take a version back too; and each global
    index."""
    alarms = project.resources("AWS::CloudWatch::Alarm")
    judges = project.template()["Globals"]["Function"]["DeploymentPreference"]["Alarms"]
    for noun in CONSUMERS:
        alarm = alarms[f"{noun}ErrorAlarm"]
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors")
        assert alarm["Dimensions"] == [
            {"Name": "FunctionName", "Value": {"Ref": f"{noun}Function"}}
        ]
        assert {"Ref": f"{noun}ErrorAlarm"} in judges
    loader = alarms["CatalogLoaderErrorAlarm"]
    assert (loader["Namespace"], loader["MetricName"]) == ("AWS/Lambda", "Errors")
    assert loader["Dimensions"] == [
        {"Name": "FunctionName", "Value": {"Ref": "CatalogLoaderFunction"}}
    ]
    [query] = alarms["IndexThrottleAlarm"]["Metrics"]
    assert "GlobalSecondaryIndexName, TableName" in query["Expression"]["Fn::Sub"]
    for name, alarm in alarms.items():
        actions = [
            {"Fn::If": ["HasAlarmTopic", *_or_nothing("AlarmTopicArn")]},
            {"Fn::If": ["HasAlarmEmail", *_or_nothing("AlarmTopic")]},
        ]
        expected = {"CanaryAlarm": None}
        assert alarm.get("AlarmActions") == expected.get(name, actions), name


def test_every_failure_queue_is_watched_and_named() -> None:
    """A queue to which something is given up has an alarm and an output."""
    queues = project.resources("AWS::SQS::Queue")
    alarms = project.resources("AWS::CloudWatch::Alarm").values()
    outputs = project.template()["Outputs"].values()
    failures = [name for name in queues if name.endswith("FailureQueue")]
    targets = json.dumps(
        [
            *(queue.get("RedrivePolicy") for queue in queues.values()),
            *(
                mapping.get("DestinationConfig")
                for mapping in project.resources("AWS::Lambda::EventSourceMapping").values()
            ),
        ]
    )
    for name in failures:
        assert f'"{name}"' in targets
        name_of_queue = {"Fn::GetAtt": [name, "QueueName"]}
        [alarm] = [
            candidate
            for candidate in alarms
            if {"Name": "QueueName", "Value": name_of_queue} in candidate.get("Dimensions", ())
        ]
        assert (alarm["MetricName"], alarm["Threshold"]) == (
            "ApproximateNumberOfMessagesVisible",
            0,
        )
        assert {"Ref": name} in [output["Value"] for output in outputs]
    assert len(failures) == targets.count("FailureQueue") == 5


def test_every_reader_of_the_stream_has_an_alarm_for_its_lag() -> None:
    readers = {
        mapping["FunctionName"]["Ref"].removesuffix(".Alias")
        for mapping in project.resources("AWS::Lambda::EventSourceMapping").values()
        if mapping["EventSourceArn"] == {"Fn::GetAtt": ["Table", "StreamArn"]}
    }
    watched = {
        alarm["Dimensions"][0]["Value"]["Ref"]
        for alarm in project.resources("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "IteratorAge"
    }
    assert watched == readers


def test_an_address_hears_of_alarms() -> None:
    for email, mailed, any_receiver in (
        ("", False, False),
        ("nobody", False, False),
        ("ops@example.com", True, True),
    ):
        resolver = _given(AlarmEmail=email)
        assert resolver.condition("HasAlarmEmail") is mailed
        assert resolver.condition("HasAlarmReceiver") is any_receiver
    topic = project.resources("AWS::SNS::Topic")["AlarmTopic"]
    assert _given(AlarmEmail="ops@example.com").resolve(topic)["Subscription"] == [
        {"Protocol": "email", "Endpoint": "ops@example.com"}
    ]


def _or_nothing(name: str) -> list[dict[str, str]]:
    return [{"Ref": name}, {"Ref": "AWS::NoValue"}]


def test_metrics_of_our_own_that_alarms_read_are_written() -> None:
    """As metrics of the table, whose name is the dimension."""
    written = {
        metric["Name"]
        for metric in (
            *observability._METRICS,
            observability._COLLECTION_METRIC,
            observability._UNAVAILABLE_METRIC,
        )
    }
    written.add(publisher.AGE)
    for alarm in project.resources("AWS::CloudWatch::Alarm").values():
        if alarm.get("Namespace") == observability.NAMESPACE:
            assert alarm["MetricName"] in written
            assert alarm["Dimensions"] == [{"Name": "table", "Value": {"Ref": "Table"}}]


def _given(**parameters: str) -> Resolver:
    return Resolver(project.template(), parameters={"Authentication": "basic", **parameters})


def test_the_table_is_encrypted_with_dynamodbs_own_key_unless_one_is_given() -> None:
    """``SSEEnabled: true`` alone is a key in the account, with KMS's charges for each use."""
    assert "SSESpecification" not in _given().resolve(TABLE)
    arn = "arn:aws:kms:eu-west-1:123456789012:key/1"
    assert _given(TableKeyArn=arn).resolve(TABLE)["SSESpecification"] == {
        "SSEEnabled": True,
        "SSEType": "KMS",
        "KMSMasterKeyId": arn,
    }


def test_limits_are_none_until_they_are_given() -> None:
    stage = project.resources("AWS::ApiGatewayV2::Stage")["ApiStage"]["DefaultRouteSettings"]
    assert _given().resolve(stage) == {"DetailedMetricsEnabled": "false"}
    limited = _given(ThrottlingRate="50", ThrottlingBurst="100").resolve(stage)
    assert (limited["ThrottlingRateLimit"], limited["ThrottlingBurstLimit"]) == ("50", "100")
    assert "OnDemandThroughput" not in _given().resolve(TABLE)
    table = _given(TableMaxWriteUnits="1000").resolve(TABLE)
    assert table["OnDemandThroughput"] == {"MaxWriteRequestUnits": "1000"}
    assert not any("OnDemandThroughput" in index for index in table["GlobalSecondaryIndexes"])
    table = _given(TableMaxReadUnits="500").resolve(TABLE)
    for limited in (table, *table["GlobalSecondaryIndexes"]):
        assert limited["OnDemandThroughput"] == {"MaxReadRequestUnits": "500"}


@pytest.mark.parametrize("minutes", ["1", "5", "59"])
def test_tables_are_behind_when_a_publication_has_left_something(minutes: str) -> None:
    """Longer than from one publication to the next, so that no landing object waits so long while
    all is well; and with the default, with what the lander waits for, two minutes at most."""
    alarm = project.resources("AWS::CloudWatch::Alarm")["SystemTablesFreshnessAlarm"]
    threshold = float(_given(SystemTablesMinutes=minutes).resolve(alarm["Threshold"]))
    lander = project.resources("AWS::Lambda::EventSourceMapping")["LanderEventSourceMapping"]
    waits = lander["MaximumBatchingWindowInSeconds"]
    assert 60 * int(minutes) < threshold <= int(minutes) * (120 - waits)
    assert alarm["MetricName"] == publisher.AGE
    assert alarm["TreatMissingData"] == "notBreaching"


def test_a_budget_tells_somebody() -> None:
    budget = project.resources("AWS::Budgets::Budget")["Budget"]
    assert not _given().condition("HasBudget")
    for given, kinds in (
        ({"BudgetEmail": "team@example.com"}, ["EMAIL"]),
        ({"BudgetEmail": "team@example.com", "AlarmTopicArn": "arn:topic"}, ["EMAIL", "SNS"]),
    ):
        resolved = _given(MonthlyBudget="20", BudgetCostTag="user:stage$prod", **given)
        assert resolved.condition("HasBudget")
        made = resolved.resolve(budget)
        assert made["Budget"]["CostFilters"] == {"TagKeyValue": ["user:stage$prod"]}
        for notification in made["NotificationsWithSubscribers"]:
            assert [
                subscriber["SubscriptionType"] for subscriber in notification["Subscribers"]
            ] == kinds


ACCESS_LOG_FIELDS = {"request_id", "time", "ip", "method", "route", "status", "latency", "size"}


def test_the_api_leaves_a_line_for_each_request() -> None:
    stage = project.resources("AWS::ApiGatewayV2::Stage")["ApiStage"]
    assert "AccessLogSettings" not in _given(AccessLogs="false").resolve(stage)
    written = _given().resolve(stage)["AccessLogSettings"]["Format"]
    variables = re.findall(r"\$context[.\w]+", written)
    line = json.loads(re.sub(r"\$context[.\w]+", "1", written))
    assert set(line) >= ACCESS_LOG_FIELDS
    free_text = {"$context.error.message", "$context.error.messageString"}
    free_text |= {"$context.integrationErrorMessage", "$context.integration.error"}
    free_text |= {"$context.authorizer.error", "$context.identity.userAgent"}
    assert not free_text & set(variables), "a message may hold quotation marks"
    assert not {"$context.path", "$context.authorizer.principalId"} & set(variables)
    group = project.resources("AWS::Logs::LogGroup")["ApiLogGroup"]
    assert group["LogGroupName"]["Fn::Sub"].startswith("/aws/vendedlogs/")


def test_every_cold_start_is_in_the_book() -> None:
    book = (project.ROOT / "docs/operations.md").read_text()
    section = book.partition("## What a cold start costs")[2]
    named = re.findall(r"(?<=\| )([a-z_]+) \| \d+(?= \|)", section)
    assert sorted(named) == sorted(project.handlers().values())


def test_every_alarm_is_in_the_book() -> None:
    book = (project.ROOT / "docs/operations.md").read_text()
    for name in project.resources("AWS::CloudWatch::Alarm"):
        assert f"`{name}`" in book, name
