"""The differences from stock MLflow that are meant; owns their list and compares nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mlcore.wire.message import MISFIT
from tests.differential.rest import Reply


class Difference(NamedTuple):
    """A permitted difference: ``holds`` says whether this pair of replies is an instance of it."""

    name: str
    reason: str
    always: bool
    holds: Callable[[Reply, Reply], bool]


def _is_error(reply: Reply, status: int, code: str) -> bool:
    return reply.status == status and reply.code == code


PERMITTED = (
    Difference(
        "crash",
        "stock answers 500 to a caller's mistake; clients would retry it for minutes",
        True,
        lambda stock, ours: (
            stock.status >= 500 and stock.code != "INVALID_STATE" and ours.status < 500
        ),
    ),
    Difference(
        "invalid state",
        "stock answers 500 INVALID_STATE to a caller's mistake; a client would retry it",
        True,
        lambda stock, ours: (
            _is_error(stock, 500, "INVALID_STATE") and ours == stock._replace(status=400)
        ),
    ),
    Difference(
        "error for SDKs",
        "the SDKs of providers read the error of a call, which stock tells as `detail` alone",
        True,
        lambda stock, ours: (
            isinstance(stock.body, dict)
            and stock.body.keys() == {"detail"}
            and isinstance(ours.body, dict)
            and isinstance(ours.body.get("error"), dict)
            and ours.body.keys() <= {"detail", "error", "type"}
            and (stock.status, stock.body["detail"]) == (ours.status, ours.body["detail"])
        ),
    ),
    Difference(
        "sql text",
        "stock shows the SQL that failed; status and code stay, the words are ours",
        True,
        lambda stock, ours: (
            "sqlalche.me" in stock.message
            and (stock.status, stock.code) == (ours.status, ours.code)
            and "sqlite" not in ours.message
        ),
    ),
    Difference(
        "unknown route",
        "stock answers HTML; JSON with ENDPOINT_NOT_FOUND has the same effect on every client",
        True,
        lambda stock, ours: (
            stock.status in {404, 405}
            and isinstance(stock.body, str)
            and ours.status in {404, 405}
            and ours.code == "ENDPOINT_NOT_FOUND"
        ),
    ),
    Difference(
        "partial parse",
        "stock drops what follows a value of a wrong type and acts on the rest; refusing is safer",
        False,
        lambda stock, ours: (
            _is_error(ours, 400, "INVALID_PARAMETER_VALUE")
            and MISFIT in ours.message
            and (stock.status == 200 or _is_error(stock, 400, ours.code))
        ),
    ),
    Difference(
        "unknown view",
        "stock takes a view type that does not exist for the default one",
        False,
        lambda stock, ours: (
            stock.status == 200
            and _is_error(ours, 400, "INVALID_PARAMETER_VALUE")
            and "for parameter 'view_type' supplied" in ours.message
        ),
    ),
    Difference(
        "list as body",
        "stock reads a list as a message without fields",
        False,
        lambda stock, ours: (
            stock.status in {200, 400}
            and _is_error(ours, 400, "INVALID_PARAMETER_VALUE")
            and ours.message.startswith("The request body must be a JSON object, got 'list'")
        ),
    ),
    Difference(
        "tag without a key",
        "stock stores a tag whose key is empty in runs/create, and there alone",
        False,
        lambda stock, ours: stock.status == 200 and _is_error(ours, 400, "BAD_REQUEST"),
    ),
    Difference(
        "repeated output",
        "stock refuses an output that is there already; a retried request must change nothing",
        False,
        lambda stock, ours: _is_error(stock, 400, "BAD_REQUEST") and ours.status == 200,
    ),
    Difference(
        "own credentials",
        "stock reports the AWS keys of its environment, which the tests set; here every endpoint "
        "needs a stored secret",
        False,
        lambda stock, ours: (
            stock.status == ours.status == 200
            and stock.body == {**ours.body, "env_credentials_available": True}
            and ours.body.get("env_credentials_available") is False
        ),
    ),
)
