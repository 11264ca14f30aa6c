"""The product of this process as a server to import from: what it tells is remembered, so that the
process can go on with another table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import evaluation.app
import gateway.app
import mcp_servers.app
from mlcore.db import keys
from mlcore.db.table import table
from operate.transfer.mlflow_client import Server, SourceFailed
from tests.contract.api import Api, called

API_3 = "api/3.0/mlflow/"
_WRITES = ("transact", "update", "put", "delete", "batch_write")
_HANDLERS = {"gateway": gateway.app.handler, "mcp-servers": mcp_servers.app.handler}
Answers = dict[str, Any]


class Killed(BaseException):
    """Nothing of the import lives on."""


class Stock(Server):
    """Stands for a server. It answers what the product of this process does and remembers it; and
    what it remembers, once it has been told to answer nothing else."""

    answers: Answers = {}
    live = False

    def get(self, path: str, /, **fields: Any) -> Any:
        return self._answer("GET", path, fields)

    def post(self, path: str, /, **fields: Any) -> Any:
        return self._answer("POST", path, fields)

    def _answer(self, method: str, path: str, fields: dict[str, Any]) -> Any:
        request = json.dumps([method, path, fields])
        if not self.live:
            if request not in self.answers:
                raise SourceFailed(404, "Not Found")
            return self.answers[request]
        if path == "api/2.0/mlflow/experiments/search":
            response = Api().post("experiments/search", **fields)
        elif path.startswith(f"{API_3}server-info"):
            raise SourceFailed(404, "Not Found")
        else:
            domain = path.removeprefix(API_3).partition("/")[0]
            handler = _HANDLERS.get(domain, evaluation.app.handler)
            body, query = (None, fields) if method == "GET" else (fields, {})
            answer = called(handler, method, f"/{path}", body, **query)
            assert answer.status == 200, answer
            response = answer.body
        self.answers[request] = response
        return response


def recorded(asking: Callable[[], object]) -> Answers:
    """What the product tells while something asks it."""
    Stock.answers, Stock.live = {}, True
    try:
        asking()
    finally:
        Stock.live = False
    return Stock.answers


def kills_until_done(transfer: Callable[[], int]) -> int:
    """How often an import was killed before it was through, each time one write later."""
    kills = 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            killed_after(kills, patch)
            try:
                assert transfer() == 0
            except Killed:
                kills += 1
            else:
                return kills


def killed_after(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many writes to the table, but for those to the counter of ids, are the last."""
    done: list[str] = []

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def write(*given: Any, **named: Any) -> Any:
            if not given or given[0] != keys.id_counter():
                if len(done) == most:
                    raise Killed
                done.append(name)
            return real(*given, **named)

        return write

    for name in _WRITES:
        monkeypatch.setattr(table, name, counting(name, getattr(table, name)))
