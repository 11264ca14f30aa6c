"""A GraphQL request from its text to its answer; knows neither the fields nor where they come
from.

As with MLflow's server the status is always 200, and errors are plain texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from graphql.error import GraphQLError
from graphql.execution import ExecutionResult, execute
from graphql.language import DocumentNode, parse
from graphql.validation import validate

from mlcore import errors
from mlcore.http import Request, Response
from mlcore.memory import Memory
from mlcore.observability import logger
from mlcore.wire import encode
from ui import cost
from ui import messages as m
from ui.schema import SCHEMA

MAX_BODY_BYTES: Final = 5_500_000
"""A Lambda response ends at 6 MB."""
KEPT_QUERY_LENGTH: Final = 20_000
"""The UI's own queries have less than 3,000 characters."""

Prepared = DocumentNode | tuple[str, ...]


def answer(message: m.GraphQlRequest, request: Request) -> Response:
    """The answer to ``{"query", "variables", "operationName"}``, sent as JSON or in a query
    string."""
    data, problems = _execute(message, request)
    body = encode({"data": data, "errors": list(problems) or None})
    if len(body) > MAX_BODY_BYTES:
        problem = "The answer is larger than the 6 MB that this server can return at once."
        body = encode({"data": None, "errors": [problem]})
    return Response(200, body)


def _execute(message: m.GraphQlRequest, request: Request) -> tuple[Any, Sequence[str]]:
    if not message.query:
        return None, ["The request has no query."]
    variables = message.variables
    if isinstance(variables, str):
        try:
            variables = json.loads(variables) if variables else None
        except ValueError:
            return None, ["The variables are not JSON."]
    if not isinstance(variables, dict | None):
        return None, ["The variables are not a JSON object."]
    keeps = len(message.query) <= KEPT_QUERY_LENGTH
    prepared = _prepared.get(message.query)
    if prepared is None:
        prepared = _prepare(message.query)
        if keeps:
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
    return result.data, [_text(error, request) for error in result.errors or ()]


def _prepare(query: str) -> Prepared:
    """The document of a query that is small enough and valid, else what is wrong with it."""
    try:
        document = parse(query, max_tokens=cost.MAX_TOKENS)
        cost.check(document)
    except GraphQLError as error:
        return (error.message,)
    problems = validate(SCHEMA, document)
    return tuple(problem.message for problem in problems) if problems else document


def _weight(prepared: Prepared) -> int:
    """A document takes a hundred bytes for each character of its query."""
    if isinstance(prepared, tuple):
        return sum(map(len, prepared))
    return 100 * (KEPT_QUERY_LENGTH if prepared.loc is None else prepared.loc.end)


_prepared: Memory[str, Prepared] = Memory("query", weigh=_weight)


def _text(error: GraphQLError, request: Request) -> str:
    cause = error.original_error
    if cause is None or isinstance(cause, errors.MlflowError | GraphQLError):
        return error.message
    logger.error(
        "unexpected error",
        exc_info=(type(cause), cause, cause.__traceback__),
        extra={"rpc": "/graphql", "request_id": request.request_id},
    )
    return f"The request failed unexpectedly (request id {request.request_id})."
