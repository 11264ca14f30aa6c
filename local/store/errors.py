"""Makes DynamoDB's errors in the form in which botocore raises them."""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError

CONDITION_FAILED: Final = "The conditional request failed"


def error(code: str, message: str, **more: Any) -> ClientError:
    """Returns a ClientError of status 400. ``more`` are additional fields of its response."""
    response: Any = {
        **more,
        "message": message,
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(response, "Store")


def invalid(message: str) -> ClientError:
    return error("ValidationException", message)


def invalid_parameter(message: str) -> ClientError:
    return invalid(f"One or more parameter values were invalid: {message}")


def condition_failed(item: dict[str, Any] | None) -> ClientError:
    """Returns DynamoDB's error for a write whose condition failed; it holds the existing item if
    one is given."""
    more = {} if item is None else {"Item": item}
    return error("ConditionalCheckFailedException", CONDITION_FAILED, **more)


def code_of(failure: ClientError) -> str:
    return failure.response["Error"]["Code"]


def message_of(failure: ClientError) -> str:
    return failure.response["Error"]["Message"]
