"""Reads from template.yaml the resources that the local server provides: functions, routes, event
source mappings, queues, schedules and the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from local.template_definitions import (
    FunctionDefinition,
    QueueDefinition,
    QueueMapping,
    RouteDefinition,
    ScheduleDefinition,
    StreamMapping,
    TemplateError,
)

_FUNCTION = "AWS::Serverless::Function"
_TABLE = "AWS::DynamoDB::Table"
_QUEUE = "AWS::SQS::Queue"
_MAPPING = "AWS::Lambda::EventSourceMapping"
_RULE = "AWS::Events::Rule"
_DEFAULT_TIMEOUT_SECONDS = 3
_MODEL_CALLERS = ("gateway_calls.",)
"""Beginnings of the handlers whose answers wait for models."""
MODEL_CALL_SECONDS = 900.0
"""How long these handlers may take: Lambda's longest timeout."""
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}


class Template(NamedTuple):
    """The resources of template.yaml that the local server provides. ``table`` holds the properties
    of the DynamoDB table."""

    functions: dict[str, FunctionDefinition]
    routes: tuple[RouteDefinition, ...]
    mappings: tuple[StreamMapping, ...]
    table: dict[str, Any]
    queues: tuple[QueueDefinition, ...] = ()
    queue_mappings: tuple[QueueMapping, ...] = ()
    schedules: tuple[ScheduleDefinition, ...] = ()
    parameters: frozenset[str] = frozenset()


def read(
    path: Path, table_name: str, region: str, parameters: Mapping[str, str] | None = None
) -> Template:
    """Reads the deployment's SAM template for the local server. The one DynamoDB table that it
    declares will be called ``table_name``. ``parameters`` override the template's defaults.

    Raises:
        TemplateError: the template cannot be read or does not declare exactly one table, or the
            local server cannot serve a resource, which the message names.
    """
    from local.cloudformation import Resolver, load  # noqa: PLC0415 - a YAML parser

    document = load(path)
    resources: dict[str, Any] = document["Resources"]
    tables = [name for name, resource in resources.items() if resource["Type"] == _TABLE]
    if len(tables) != 1:
        raise TemplateError(f"{path}: one {_TABLE} is needed, there are {len(tables)}")
    resolver = Resolver(
        document, parameters=parameters, physical={tables[0]: table_name}, region=region
    )
    live = {
        name: resource
        for name, resource in resources.items()
        if "Condition" not in resource or resolver.condition(resource["Condition"])
    }
    global_function = resolver.resolve(document.get("Globals", {}).get("Function", {}))
    properties = {
        name: resolver.resolve(resource.get("Properties", {}))
        for name, resource in live.items()
        if resource["Type"] in _SERVED
    }
    kinds = {name: live[name]["Type"] for name in properties}
    functions = {
        name: _function(name, properties[name], global_function, path.parent)
        for name, kind in kinds.items()
        if kind == _FUNCTION
    }
    return Template(
        parameters=frozenset(document.get("Parameters", ())),
        functions=functions,
        routes=tuple(_routes(properties, kinds, functions)),
        mappings=tuple(_mappings(properties, kinds, functions, table_name)),
        table=properties[tables[0]],
        queues=tuple(
            _queue(name, properties[name]) for name, kind in kinds.items() if kind == _QUEUE
        ),
        queue_mappings=tuple(_queue_mappings(properties, kinds, functions)),
        schedules=tuple(_schedules(properties, kinds, functions)),
    )


_SERVED = frozenset(
    {
        _FUNCTION,
        _TABLE,
        "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::Integration",
        "AWS::ApiGatewayV2::Authorizer",
        _MAPPING,
        _QUEUE,
        _RULE,
    }
)


def _function(
    name: str, own: dict[str, Any], shared: dict[str, Any], root: Path
) -> FunctionDefinition:
    merged = {**shared, **own}
    if "Handler" not in merged or "CodeUri" not in merged:
        raise TemplateError(f"{name}: Handler and CodeUri are needed")
    variables = {
        **shared.get("Environment", {}).get("Variables", {}),
        **own.get("Environment", {}).get("Variables", {}),
    }
    calls_models = merged["Handler"].startswith(_MODEL_CALLERS)
    timeout = MODEL_CALL_SECONDS if calls_models else merged.get("Timeout")
    return FunctionDefinition(
        name=name,
        handler=merged["Handler"],
        code=(root / str(merged["CodeUri"])).resolve(),
        timeout_seconds=float(_DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout),
        memory_mb=int(merged.get("MemorySize", 128)),
        environment={
            key: ("true" if value else "false") if isinstance(value, bool) else str(value)
            for key, value in variables.items()
        },
        calls_models=calls_models,
    )


def _named_function(text: str, functions: dict[str, FunctionDefinition]) -> str | None:
    """Returns the logical id of the function that a text refers to: an ARN, a function's name or an
    alias; None if there is none."""
    words = re.split(r"[^A-Za-z0-9]+", text)
    for word in words:
        if word in functions:
            return word
    for word in words:  # SAM names the alias resource <function>Alias<alias>
        function = re.sub(r"Alias[A-Za-z0-9]*$", "", word)
        if function in functions:
            return function
    return None


def _routes(
    properties: dict[str, Any], kinds: dict[str, str], functions: dict[str, FunctionDefinition]
) -> list[RouteDefinition]:
    integrations: dict[str, str] = {}
    for name, kind in kinds.items():
        if kind != "AWS::ApiGatewayV2::Integration":
            continue
        function = _named_function(str(properties[name].get("IntegrationUri", "")), functions)
        if function is None:
            raise TemplateError(f"{name}: IntegrationUri names no function of this template")
        if str(properties[name].get("PayloadFormatVersion")) != "2.0":
            raise TemplateError(f"{name}: PayloadFormatVersion must be '2.0'")
        integrations[name] = function
    authorizers = _authorizers(properties, kinds, functions)
    routes = []
    for name, kind in kinds.items():
        if kind != "AWS::ApiGatewayV2::Route":
            continue
        integration = str(properties[name].get("Target", "")).removeprefix("integrations/")
        if integration not in integrations:
            raise TemplateError(f"{name}: Target names no integration of this template")
        authorizer = None
        if properties[name].get("AuthorizationType", "NONE") == "CUSTOM":
            authorizer = authorizers.get(str(properties[name].get("AuthorizerId")))
            if authorizer is None:
                raise TemplateError(f"{name}: AuthorizerId names no authorizer of this template")
        key = properties[name]["RouteKey"]
        routes.append(RouteDefinition(key, integrations[integration], authorizer))
    return routes


def _authorizers(
    properties: dict[str, Any], kinds: dict[str, str], functions: dict[str, FunctionDefinition]
) -> dict[str, str]:
    """Returns the function of each authorizer, by the authorizer's logical id."""
    functions_by_id = {}
    for name, kind in kinds.items():
        if kind != "AWS::ApiGatewayV2::Authorizer":
            continue
        own = properties[name]
        function = _named_function(str(own.get("AuthorizerUri", "")), functions)
        if function is None:
            raise TemplateError(f"{name}: AuthorizerUri names no function of this template")
        simple = own.get("EnableSimpleResponses") is True
        if str(own.get("AuthorizerPayloadFormatVersion")) != "2.0" or not simple:
            raise TemplateError(f"{name}: format 2.0 with simple responses is needed")
        if int(own.get("AuthorizerResultTtlInSeconds", 300)) and own.get("IdentitySource"):
            raise TemplateError(f"{name}: answers of an authorizer are not kept here")
        functions_by_id[name] = function
    return functions_by_id


def _mappings(
    properties: dict[str, Any],
    kinds: dict[str, str],
    functions: dict[str, FunctionDefinition],
    table_name: str,
) -> list[StreamMapping]:
    mappings = []
    for name, kind in kinds.items():
        own = properties[name]
        if kind == _FUNCTION:
            mappings += [
                (f"{name}{event_name}", name, event.get("Properties", {}), "Stream")
                for event_name, event in own.get("Events", {}).items()
                if event["Type"] == "DynamoDB"
            ]
        elif kind == _MAPPING:
            function = _named_function(str(own.get("FunctionName", "")), functions)
            if function is None:
                raise TemplateError(f"{name}: FunctionName names no function of this template")
            mappings.append((name, function, own, "EventSourceArn"))
    return [
        _mapping(name, function, own)
        for name, function, own, source in mappings
        if str(own.get(source, "")).endswith(f":StreamArn:{table_name}")
        and own.get("Enabled", True)
    ]


def _mapping(name: str, function: str, own: dict[str, Any]) -> StreamMapping:
    return StreamMapping(
        name=name,
        function=function,
        patterns=tuple(
            rule["Pattern"] for rule in own.get("FilterCriteria", {}).get("Filters", ())
        ),
        batch_size=int(own.get("BatchSize", 100)),
        batching_window_seconds=float(own.get("MaximumBatchingWindowInSeconds", 0)),
        starting_position=own.get("StartingPosition", "TRIM_HORIZON"),
        maximum_retry_attempts=int(own.get("MaximumRetryAttempts", -1)),
        maximum_record_age_seconds=int(own.get("MaximumRecordAgeInSeconds", -1)),
        bisect=bool(own.get("BisectBatchOnFunctionError", False)),
        report_batch_item_failures="ReportBatchItemFailures"
        in own.get("FunctionResponseTypes", ()),
    )


def _queue(name: str, own: dict[str, Any]) -> QueueDefinition:
    redrive = own.get("RedrivePolicy", {})
    target = str(redrive.get("deadLetterTargetArn", "")).rpartition(":")[2]
    return QueueDefinition(
        name=name,
        visibility_seconds=float(own.get("VisibilityTimeout", 30)),
        delay_seconds=float(own.get("DelaySeconds", 0)),
        retention_seconds=float(own.get("MessageRetentionPeriod", 345_600)),
        dead_letter=target or None,
        maximum_receives=int(redrive.get("maxReceiveCount", 0)),
    )


def _queue_mappings(
    properties: dict[str, Any], kinds: dict[str, str], functions: dict[str, FunctionDefinition]
) -> Iterator[QueueMapping]:
    for name, kind in kinds.items():
        own = properties[name]
        queue = str(own.get("EventSourceArn", "")).rpartition(":")[2]
        if kind != _MAPPING or kinds.get(queue) != _QUEUE or not own.get("Enabled", True):
            continue
        function = _named_function(str(own.get("FunctionName", "")), functions)
        if function is None:
            raise TemplateError(f"{name}: FunctionName names no function of this template")
        yield QueueMapping(
            name=name,
            function=function,
            queue=queue,
            batch_size=int(own.get("BatchSize", 10)),
            concurrency=int(own.get("ScalingConfig", {}).get("MaximumConcurrency", 5)),
            report_batch_item_failures="ReportBatchItemFailures"
            in own.get("FunctionResponseTypes", ()),
        )


def _schedules(
    properties: dict[str, Any], kinds: dict[str, str], functions: dict[str, FunctionDefinition]
) -> Iterator[ScheduleDefinition]:
    """Yields the enabled rules of schedules. Raises TemplateError if a rule has an expression other
    than ``rate(…)``, such as cron."""
    for name, kind in kinds.items():
        own = properties[name]
        if kind != _RULE or own.get("State", "ENABLED") != "ENABLED":
            continue
        if "EventPattern" in own:
            continue  # an event of AWS that no local service sends
        rate = _RATE.fullmatch(str(own.get("ScheduleExpression", "")))
        if rate is None:
            raise TemplateError(f"{name}: ScheduleExpression is no rate")
        for target in own.get("Targets", ()):
            function = _named_function(str(target.get("Arn", "")), functions)
            if function is None:
                raise TemplateError(f"{name}: a target names no function of this template")
            yield ScheduleDefinition(
                name=name,
                function=function,
                seconds=int(rate[1]) * _UNIT_SECONDS[rate[2]],
                event=json.loads(target.get("Input", "{}")),
            )
