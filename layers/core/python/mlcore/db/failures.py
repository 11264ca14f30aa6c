"""What failures of DynamoDB become: a failed condition, an error that the caller sees, or a
defect."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, cast

from botocore.exceptions import BotoCoreError, ClientError

from mlcore import errors
from mlcore.db.expression import Raw

_logger: Final = logging.getLogger("mlcore.db")
"""For causes that only who operates the table may read."""


class ConditionFailed(Exception):
    """A condition did not hold; ``item`` is what the table holds instead, None when there is
    nothing."""

    def __init__(self, item: Raw | None) -> None:
        super().__init__("condition failed")
        self.item = item


class TooLarge(errors.InvalidParameterValue):
    """The item would have more than DynamoDB's 400 KB."""


_THROTTLED = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionInProgressException",
}


def code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def too_large() -> TooLarge:
    return TooLarge("The request would make an entity larger than 400 KB.")


def busy(reasons: Iterable[Raw] = ()) -> errors.TemporarilyUnavailable:
    """``reasons`` are those of a cancelled transaction, for the log."""
    told = [f"{reason.get('Code')}: {reason.get('Message')}" for reason in reasons]
    _logger.warning("the table is busy with conflicting writes: %s", ", ".join(told))
    return errors.TemporarilyUnavailable("The table is busy with conflicting writes. Try again.")


def unreachable(error: BotoCoreError) -> errors.TemporarilyUnavailable:
    _logger.error("the table cannot be reached: %s", error)
    return errors.TemporarilyUnavailable("The table cannot be reached. Try again.")


def translated(error: ClientError) -> Exception:
    name = code(error)
    message = error.response.get("Error", {}).get("Message", "")
    if name == "ConditionalCheckFailedException":
        return ConditionFailed(cast("Raw | None", error.response.get("Item")))
    if name in _THROTTLED:
        return errors.RequestLimitExceeded("The table is throttling requests. Try again later.")
    if name == "ItemCollectionSizeLimitExceededException":
        return errors.BadRequest(
            "The experiment holds 10 GB, which is the most that one experiment can hold."
        )
    if name == "ValidationException" and "size" in message.lower():
        return too_large()
    if name in {"InternalServerError", "ServiceUnavailable", "InternalServerException"}:
        _logger.error("the table is not available: %s", error)
        return errors.TemporarilyUnavailable("The table is not available. Try again.")
    return error
