"""Parses, validates and executes GraphQL requests. :mod:`ui.graphql.resolvers` reads the fields.

As with MLflow's server the status is 200 also for a query with errors, and errors are plain texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphql.error import GraphQLError
from graphql.execution import ExecutionResult, execute
from graphql.language import DocumentNode, parse
from graphql.validation import validate

from mlcore import errors
from mlcore.http import Request, Response
from mlcore.observability import logger
from mlcore.process_cache import ProcessCache
from mlcore.wire import encode
from mlcore.wire.json_text import parse_json_text
from ui import messages as m
from ui.graphql import query_limits
from ui.graphql.schema import SCHEMA

MAX_BODY_BYTES: Final = 5_500_000
"""The largest answer; a Lambda response is limited to 6 MB."""
CACHED_QUERY_LENGTH: Final = 20_000
"""Characters of the longest query whose document is cached. The UI's own queries have fewer than
3,000."""

Prepared = DocumentNode | tuple[str, ...]
"""A valid document, or the messages of its errors."""


def answer(message: m.GraphQlRequest, request: Request) -> Response:
    """Executes a GraphQL request (``query``, ``variables``, ``operationName``), sent as JSON or in
    a query string."""
    data, error_messages = _execute(message, request)
    body = encode({"data": data, "errors": list(error_messages) or None})
    if len(body) > MAX_BODY_BYTES:
        too_large = "The answer is larger than the 6 MB that this server can return at once."
        body = encode({"data": None, "errors": [too_large]})
    return Response(200, body)


def _execute(message: m.GraphQlRequest, request: Request) -> tuple[Any, Sequence[str]]:
    if not message.query:
        return None, ["The request has no query."]
    variables = message.variables
    if isinstance(variables, str):
        try:
            variables = parse_json_text(variables) if variables else None
        except ValueError:
            return None, ["The variables are not JSON."]
    if not isinstance(variables, dict | None):
        return None, ["The variables are not a JSON object."]
    is_cacheable = len(message.query) <= CACHED_QUERY_LENGTH
    prepared = _prepared.get(message.query)
    if prepared is None:
        prepared = _prepare(message.query)
        if is_cacheable:
            _prepared.put(message.query, prepared)
    if isinstance(prepared, tuple):
        return None, prepared
    result = execute(
        SCHEMA,
        prepared,
        context_value=request,
        variable_values=variables,
        operation_name=message.operation_name or None,
    )
    assert isinstance(result, ExecutionResult)  # noqa: S101 - no resolver awaits
    return result.data, [_message(error, request) for error in result.errors or ()]


def _prepare(query: str) -> Prepared:
    """Parses and validates a query. Returns its document, or the messages of its errors."""
    try:
        document = parse(query, max_tokens=query_limits.MAX_TOKENS)
        query_limits.check(document)
    except GraphQLError as error:
        return (error.message,)
    problems = validate(SCHEMA, document)
    return tuple(problem.message for problem in problems) if problems else document


def _weight(prepared: Prepared) -> int:
    """Estimates the bytes of a cache entry. A document takes a hundred for each character of its
    query."""
    if isinstance(prepared, tuple):
        return sum(map(len, prepared))
    return 100 * (CACHED_QUERY_LENGTH if prepared.loc is None else prepared.loc.end)


_prepared: ProcessCache[str, Prepared] = ProcessCache("query", weigh=_weight)


def _message(error: GraphQLError, request: Request) -> str:
    """Returns the message for the client. An unexpected error is logged, and its message hidden."""
    cause = error.original_error
    if cause is None or isinstance(cause, errors.MlflowError | GraphQLError):
        return error.message
    logger.error(
        "unexpected error",
        exc_info=(type(cause), cause, cause.__traceback__),
        extra={"rpc": "/graphql", "request_id": request.request_id},
    )
    return f"The request failed unexpectedly (request id {request.request_id})."
