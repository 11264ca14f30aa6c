"""The parts of template.yaml that the local server needs (functions, routes, queues and others), as
plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class TemplateError(Exception):
    """Raised if template.yaml cannot be read, is not valid, or uses a feature that the local server
    does not support; the message says what is wrong.
    """


class FunctionDefinition(NamedTuple):
    """One Lambda function. ``handler`` is ``module.attribute``; ``code`` is the folder that holds
    the module."""

    name: str
    handler: str
    code: Path
    timeout_seconds: float
    memory_mb: int
    environment: dict[str, str]
    calls_models: bool = False
    """Whether its answers wait for language models, which may take longer than API Gateway waits.
    Here nothing ends these calls after 30 seconds."""


class RouteDefinition(NamedTuple):
    """One route of the HTTP API: its key (``ANY /path/{proxy+}`` or ``$default``), its function,
    and the authorizer's function, which is called first, if there is one."""

    key: str
    function: str
    authorizer: str | None = None


class StreamMapping(NamedTuple):
    """One event source mapping from the table's stream, with the values of Lambda's properties; −1
    means no limit."""

    name: str
    function: str
    patterns: tuple[str, ...]
    batch_size: int
    batching_window_seconds: float
    starting_position: str
    maximum_retry_attempts: int
    maximum_record_age_seconds: int
    bisect: bool
    report_batch_item_failures: bool


class RecordRequirement(NamedTuple):
    """Properties that a stream record must have to match one filter pattern of Lambda. They are
    necessary but not sufficient: a record with these properties may still not match."""

    events: frozenset[str] | None
    """Allowed event names, such as ``INSERT``; None for any."""
    image: str
    """``NewImage`` or ``OldImage``: the image to which the next two fields apply."""
    types: frozenset[str]
    """Allowed values of the item's ``type``."""
    present: tuple[tuple[str, str], ...]
    """Attributes that must exist, each with its DynamoDB type."""


class QueueDefinition(NamedTuple):
    """One SQS queue. ``dead_letter`` names the queue that takes messages received
    ``maximum_receives`` times without success; None for none."""

    name: str
    visibility_seconds: float
    delay_seconds: float
    retention_seconds: float
    dead_letter: str | None
    maximum_receives: int


class QueueMapping(NamedTuple):
    """An event source mapping from an SQS queue to a Lambda function, with the values of Lambda's
    properties."""

    name: str
    function: str
    queue: str
    batch_size: int
    concurrency: int
    report_batch_item_failures: bool


class ScheduleDefinition(NamedTuple):
    """A schedule rule of the template: calls a function every ``seconds`` seconds with
    ``event``."""

    name: str
    function: str
    seconds: float
    event: Any
