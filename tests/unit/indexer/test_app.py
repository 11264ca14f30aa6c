"""What the indexer says to Lambda about records that it could not handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from indexer import app
from mlcore.observability import logger


def record(number: str, kind: str) -> dict[str, Any]:
    return {"dynamodb": {"SequenceNumber": number, "NewImage": {"type": {"S": kind}}}}


RECORDS = [record("1", "run"), record("2", "experiment"), record("3", "run")]


def broken(_: Sequence[Any]) -> None:
    raise RuntimeError("unforeseen")


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "EXPIRING", ())
    monkeypatch.setattr(logger, "exception", lambda *_args, **_more: None)


def working(_: Sequence[Any]) -> None:
    """Handles whatever comes."""


def test_it_starts_again_from_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_PROJECTORS", {"run": (working,), "experiment": (broken,)})
    assert app.handler({"Records": RECORDS}, None) == {
        "batchItemFailures": [{"itemIdentifier": "2"}]
    }


def test_a_batch_that_fails_from_the_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or no metric of Lambda's would tell of an indexer that handles nothing."""
    seen: list[int] = []
    monkeypatch.setattr(
        app,
        "_PROJECTORS",
        {"run": (broken,), "experiment": (lambda given: seen.append(len(given)),)},
    )
    with pytest.raises(app.NothingIndexed):
        app.handler({"Records": RECORDS}, None)
    assert seen == [1]
