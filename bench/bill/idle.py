"""Computes what each resource of the template costs in a month without use, per stage of
samconfig.toml."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from local import cloudformation
from mlcore.prices import aws as prices
from operate.versions import KEPT

ROOT: Final = Path(__file__).resolve().parents[2]

POLLS: Final = 5 * 3 * 60 * prices.HOURS
"""Lambda's monthly requests to an empty queue: five pollers, each three times a minute."""

SCHEDULED_GB_SECONDS: Final = 0.2
"""Upper bound of a scheduled call that finds nothing to do: a tenth of a second at 1,769 MiB."""

FREE: Final = {
    "AWS::ApiGateway::Authorizer": "nothing",
    "AWS::ApiGateway::Deployment": "nothing",
    "AWS::ApiGateway::Method": "nothing",
    "AWS::ApiGateway::Resource": "nothing",
    "AWS::ApiGateway::RestApi": "by request",
    "AWS::ApiGateway::Stage": "by request, as it has no cache",
    "AWS::ApiGatewayV2::Api": "by request",
    "AWS::ApiGatewayV2::ApiMapping": "nothing",
    "AWS::ApiGatewayV2::Authorizer": "nothing",
    "AWS::ApiGatewayV2::DomainName": "nothing",
    "AWS::ApiGatewayV2::Integration": "nothing",
    "AWS::ApiGatewayV2::Route": "nothing",
    "AWS::ApiGatewayV2::Stage": "by request",
    "AWS::AppConfig::Application": "by what reads it, and nothing does",
    "AWS::AppConfig::ConfigurationProfile": "by what reads it, and nothing does",
    "AWS::AppConfig::HostedConfigurationVersion": "by what reads it, and nothing does",
    "AWS::Budgets::Budget": "nothing, as it takes no action",
    "AWS::CloudFront::Distribution": "by request and byte",
    "AWS::CloudFront::Function": "by call",
    "AWS::CloudFront::OriginAccessControl": "nothing",
    "AWS::CloudFront::ResponseHeadersPolicy": "nothing",
    "AWS::Glue::Database": "nothing",
    "AWS::Glue::Table": "nothing, up to a million",
    "AWS::IAM::Role": "nothing",
    "AWS::KinesisFirehose::DeliveryStream": "by byte",
    "AWS::Lambda::Permission": "nothing",
    "AWS::Logs::LogGroup": "by byte",
    "AWS::Logs::SubscriptionFilter": "nothing; what it delivers to is charged",
    "AWS::S3::Bucket": "by byte and request",
    "AWS::S3::BucketPolicy": "nothing",
    "AWS::SNS::Topic": "by message; e-mail is free up to a thousand",
    "AWS::SQS::Queue": "by request; those of Lambda are its event source's",
    "AWS::Serverless::LayerVersion": "nothing",
}
"""Resource types that cost nothing while they are unused, each with the unit by which it is
billed."""


SCHEDULED_READ_UNITS: Final = 2.0
"""Read units of a scheduled call that finds nothing to do. tests/contract/test_idle_sweeps.py
counts those of the judge runner, also with schedules of issue detection that are not due."""

SCHEDULED_CALL: Final = (
    prices.INVOCATION
    + SCHEDULED_GB_SECONDS * prices.GB_SECOND
    + SCHEDULED_READ_UNITS * prices.READ_UNIT
)
LOOK_GB_SECONDS: Final = 0.07
"""Upper bound of a scheduled call that lists files and finds nothing new: 40 ms at 1,769 MiB, of
which it waits 30."""

LOOK: Final = prices.FILES_PUT + prices.INVOCATION + LOOK_GB_SECONDS * prices.GB_SECOND
_RATE: Final = re.compile(r"rate\((\d+) (minute|hour)s?\)")


class Item(NamedTuple):
    """A line of the idle costs: ``number`` resources that each cost ``each`` dollars a month."""

    subject: str
    number: int
    each: float

    @property
    def dollars(self) -> float:
        return self.number * self.each


ALARMS: Final = "alarms, one metric each"
QUEUES: Final = "queues that Lambda polls"
LOOKS: Final = "scheduled calls that find nothing to publish or load"
KEYS: Final = "key of secrets (KMS)"
RENEWALS: Final = "renewals of the key, after two years"
DASHBOARDS: Final = "dashboard"
SCHEDULED: Final = "schedules for inactive runs, automatic scoring and alerts"
SNAPSHOTS: Final = "snapshots of versions (SnapStart)"


class NotPriced(Exception):
    """Raised if this file has no price for a resource type or setting that may cost something; the
    message names it."""


@functools.cache
def template() -> dict[str, Any]:
    return cloudformation.load(ROOT / "template.yaml")


def items(parameters: Mapping[str, str], kept: int = KEPT) -> list[Item]:
    """Returns the monthly costs of the resources of a deployment with these parameters, on the
    assumption that ``kept`` versions of each function stay before the live one. Raises NotPriced if
    a resource type or a setting has no price."""
    document = template()
    resolver = cloudformation.Resolver(document, parameters=parameters)
    shared = resolver.resolve(document["Globals"]["Function"])
    counts: dict[tuple[str, float], int] = {}
    for name, resource in document["Resources"].items():
        if "Condition" in resource and not resolver.condition(resource["Condition"]):
            continue
        properties = resolver.resolve(resource["Properties"])
        if resource["Type"] == "AWS::Serverless::Function":
            properties = {**shared, **properties}
        for subject, number, each in _of(name, resource["Type"], properties, kept):
            counts[subject, each] = counts.get((subject, each), 0) + number
    return [Item(subject, number, each) for (subject, each), number in counts.items() if number]


def _calls(name: str, schedule: str) -> float:
    """Returns how many times a schedule calls its function in a month."""
    words = _RATE.fullmatch(schedule)
    if words is None:
        raise NotPriced(f"{name}: {schedule}")
    return prices.SECONDS / (int(words[1]) * {"minute": 60, "hour": 3600}[words[2]])


def _of(name: str, kind: str, properties: Mapping[str, Any], kept: int) -> list[Item]:
    match kind:
        case "AWS::CloudWatch::Alarm":
            return [Item(ALARMS, _watched(properties), prices.ALARM_METRIC)]
        case "AWS::CloudWatch::Dashboard":
            return [Item(DASHBOARDS, 1, prices.DASHBOARD)]
        case "AWS::KMS::Key":
            renewed = int(properties.get("RotationPeriodInDays", 365)) <= 365
            return [
                Item(KEYS, 1, prices.KEY),
                Item(RENEWALS, 2 if renewed else 0, prices.KEY_RENEWAL),
            ]
        case "AWS::Lambda::EventSourceMapping":
            queue = "StreamArn" not in properties["EventSourceArn"]  # Lambda reads streams for free
            return [Item(QUEUES, int(queue), POLLS * prices.QUEUE_REQUEST)]
        case "AWS::Serverless::Function":
            if "ProvisionedConcurrencyConfig" in properties:
                raise NotPriced(f"{name}: concurrency that is provisioned")
            snapshot = properties.get("SnapStart", {}).get("ApplyOn") == "PublishedVersions"
            memory = int(properties["MemorySize"]) / 1024
            each = memory * prices.SNAPSHOT_GB_SECOND * prices.SECONDS
            return [Item(SNAPSHOTS, (1 + kept) * snapshot, each)]
        case "AWS::Scheduler::Schedule":  # each call only lists the landing objects
            calls = _calls(name, properties["ScheduleExpression"])
            return [Item(LOOKS, int(calls), LOOK)]
        case "AWS::Events::Rule" if "EventPattern" in properties:
            return []  # events of AWS itself cost nothing
        case "AWS::Events::Rule":
            calls = _calls(name, properties["ScheduleExpression"])
            return [Item(SCHEDULED, 1, calls * SCHEDULED_CALL)]
        case "AWS::DynamoDB::Table":
            if properties["BillingMode"] != "PAY_PER_REQUEST":
                raise NotPriced(f"{name}: capacity that is provisioned")
            return []
    if kind not in FREE:
        raise NotPriced(f"{name}: {kind}")
    return []


def _watched(alarm: Mapping[str, Any]) -> int:
    """Returns the number of metrics for which an alarm is billed. A metrics query is billed by the
    number of metrics that it matches: none for throttled indexes while the deployment is idle."""
    return sum("MetricStat" in metric for metric in alarm["Metrics"]) if "Metrics" in alarm else 1


def stages() -> dict[str, dict[str, str]]:
    """Returns the parameters of each stage of samconfig.toml."""
    parameters_of = {}
    for name, commands in tomllib.loads((ROOT / "samconfig.toml").read_text()).items():
        given = isinstance(commands, dict) and commands.get("deploy", {}).get("parameters", {})
        if given:
            overrides = given["parameter_overrides"].split()
            parameters_of[name] = dict(pair.split("=", 1) for pair in overrides)
    return parameters_of


def total(priced_items: list[Item]) -> float:
    return sum(item.dollars for item in priced_items)


def table() -> str:
    """Returns a Markdown table with the idle costs of all stages side by side."""
    columns = {name: items(parameters) for name, parameters in stages().items()}
    rows: dict[tuple[str, float], dict[str, int]] = {}
    for stage, priced_items in columns.items():
        for item in priced_items:
            rows.setdefault((item.subject, item.each), {})[stage] = item.number
    lines = [
        f"| each month | each | {' | '.join(columns)} |",
        f"|---|---|{'---|' * len(columns)}",
    ]
    for (subject, each), numbers in rows.items():
        cells = (str(numbers.get(stage, 0)) for stage in columns)
        lines.append(f"| {subject} | ${each:.2f} | {' | '.join(cells)} |")
    sums = (f"**${total(column):.2f}**" for column in columns.values())
    lines.append(f"| **together** | | {' | '.join(sums)} |")
    return "\n".join(lines)


CHOICES: Final = (
    ("`MetricsDashboard=true`", {"MetricsDashboard": "true"}, 1),
    ("`KeyRotationDays=365`", {"KeyRotationDays": "365"}, 1),
    ("`SnapStart=true`, `make deploy KEEP=0`", {"SnapStart": "true"}, 0),
    ("`SnapStart=true`, `make deploy` (`KEEP=1`)", {"SnapStart": "true"}, 1),
    ("`SnapStart=true`, `make deploy KEEP=3`", {"SnapStart": "true"}, 3),
)


def choices() -> str:
    """Returns a Markdown table of what optional parameters add to the monthly costs."""
    base = stages()["prod"]
    without = total(items(base))
    lines = ["| choice | adds each month |", "|---|---|"]
    for subject, parameters, kept in CHOICES:
        more = total(items({**base, **parameters}, kept)) - without
        lines.append(f"| {subject} | ${more:.2f} |")
    return "\n".join(lines)
