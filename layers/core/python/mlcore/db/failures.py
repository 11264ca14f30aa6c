"""Translates DynamoDB's errors into :class:`ConditionFailed` or errors of :mod:`mlcore.errors`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, cast

from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from mlcore import errors
from mlcore.db.expression import Raw

_logger: Final = logging.getLogger("mlcore.db")
"""The logger for causes that only the operator may see."""


class ConditionFailed(Exception):
    """Raised if the condition of a write did not hold; ``item`` is the existing item, or None.
    ``may_be_own`` tells whether an earlier attempt of this write, whose answer was lost, may have
    been executed."""

    def __init__(self, item: Raw | None, *, may_be_own: bool = False) -> None:
        super().__init__("condition failed")
        self.item = item
        self.may_be_own = may_be_own


class AdditionalOperationFailed(Exception):
    """Raised by a repository function that takes further operations for its transaction, if the
    condition of one of these operations did not hold.

    ``position`` is the index of this operation among the further operations.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class ItemTooLarge(errors.InvalidParameterValue):
    """Raised if a write would make the item larger than DynamoDB's limit of 400 KB."""


IS_LOST: Final = "IsLost"
"""Field of a ClientError's ``ResponseMetadata``: whether an earlier attempt of the same call, whose
answer was lost, may have been executed."""


class NotExecuted(BotoCoreError):
    """Raised if a call of an AWS service such as DynamoDB, or of the local store, failed without an
    answer but certainly changed nothing."""


class NotSent(NotExecuted, EndpointConnectionError):
    """Raised if no attempt of an AWS call was sent: there was no connection, or no time was
    left."""


class NotSaved(NotExecuted):
    """Raised by an embedded store that can save nothing until somebody acts, for example because
    its disk is full. ``advice`` tells the caller what to do.
    """

    advice = "The server cannot save anything now."


NOT_SAVED: Final = "NotSaved"
"""Error code that a local stand-in for an AWS service returns if it can save nothing; the error's
message is the advice."""


_THROTTLED = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
}


_UNFINISHED = {
    "InternalServerError",
    "InternalServerException",
    "ServiceUnavailable",
    "TransactionInProgressException",
}
"""Error codes after which DynamoDB may or may not have executed the call."""


def code(error: ClientError) -> str:
    """Returns the code of a DynamoDB error; an empty text if it has none."""
    return error.response.get("Error", {}).get("Code", "")


def mark_lost(error: ClientError, *, is_lost: bool) -> bool:
    """Marks an error if an earlier attempt of its call may have been executed: if ``is_lost`` says
    so, or if the error has the mark already. Returns whether the error has the mark."""
    about = cast("Raw", error.response).setdefault("ResponseMetadata", {})
    about[IS_LOST] = is_lost or bool(about.get(IS_LOST))
    return bool(about[IS_LOST])


def may_have_written(error: BotoCoreError | ClientError) -> bool:
    """Returns whether DynamoDB may have executed a call that ended with this error: the answer was
    lost, or DynamoDB failed while it worked."""
    if isinstance(error, ClientError):
        about: Raw = dict(error.response.get("ResponseMetadata", {}))
        if about.get(IS_LOST) or about.get("HTTPStatusCode", 0) >= 500:
            return True
        return code(error) in _UNFINISHED
    return not isinstance(error, NotExecuted)


def item_too_large() -> ItemTooLarge:
    return ItemTooLarge("The request would make an entity larger than 400 KB.")


def collection_full() -> errors.BadRequest:
    """Returns the error for a write beyond DynamoDB's limit of 10 GB in one partition."""
    return errors.BadRequest(
        "The experiment holds 10 GB, which is the most that one experiment can hold."
    )


def size_refusal(reasons: Iterable[Raw]) -> errors.MlflowError | None:
    """Returns the error of a transaction that DynamoDB cancelled because an item or its partition
    would become too large; None for other reasons. Repeating such a transaction does not help. The
    reason ``ValidationError`` is taken for an item that is too large."""
    codes = {reason.get("Code") for reason in reasons}
    if "ValidationError" in codes:
        return item_too_large()
    return collection_full() if "ItemCollectionSizeLimitExceeded" in codes else None


def busy_error(reasons: Iterable[Raw] = ()) -> errors.RequestLimitExceeded:
    """Returns the error that tells the client to retry a write that was not executed because it
    conflicted with others. Logs the ``reasons`` of a cancelled transaction."""
    shown = [f"{reason.get('Code')}: {reason.get('Message')}" for reason in reasons]
    _logger.warning("the table is busy with conflicting writes: %s", ", ".join(shown))
    return errors.RequestLimitExceeded("The table is busy with conflicting writes. Try again.")


def unanswered_error(error: BotoCoreError) -> errors.MlflowError:
    """Returns the error to raise for a call that the table did not answer (503), or that a laptop's
    store could not save, for example because its disk is full (507). Logs the cause."""
    if isinstance(error, NotSaved):
        _logger.error("the table cannot be written: %s", error)
        return errors.InsufficientStorage(error.advice)
    _logger.error("the table cannot be reached: %s", error)
    return errors.TemporarilyUnavailable("The table cannot be reached. Try again.")


def translate(error: ClientError) -> Exception:
    """Returns the exception to raise instead of a DynamoDB error: ConditionFailed or an error of
    :mod:`mlcore.errors`. Returns an unexpected error unchanged."""
    name = code(error)
    message = error.response.get("Error", {}).get("Message", "")
    if name == "ConditionalCheckFailedException":
        about: Raw = dict(error.response.get("ResponseMetadata", {}))
        item = cast("Raw | None", error.response.get("Item"))
        return ConditionFailed(item, may_be_own=bool(about.get(IS_LOST)))
    if name in _THROTTLED:
        return errors.RequestLimitExceeded("The table is throttling requests. Try again later.")
    if name == "ItemCollectionSizeLimitExceededException":
        return collection_full()
    if name == "ValidationException" and "size" in message.lower():
        return item_too_large()
    if name in _UNFINISHED:
        _logger.error("the table is not available: %s", error)
        return errors.TemporarilyUnavailable("The table is not available. Try again.")
    return error
