"""The same searches of runs on the product and on the stock server."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tests.differential.rest import Reply, Side, post

VIEWS = ("ACTIVE_ONLY", "ACTIVE_ONLY", "DELETED_ONLY", "ALL")


class Found(NamedTuple):
    """All pages of one search: labels of what was found, or the reply that refused it."""

    labels: list[str]
    error: Reply | None


class Searcher:
    """One side of the comparison: knows which id has which label there."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._labels = {str(value): label for label, value in side.values.items()}

    def all_pages(self, path: str, body: dict[str, Any], rows: str) -> Found:
        labels: list[str] = []
        body = self._own(body)
        while True:
            reply = self._side.send(post(path, body))
            if reply.status != 200:
                return Found([], self._side.comparable(reply))
            for row in reply.body.get(rows, ()):
                info = row.get("info", row)
                labels.append(self._labels[info.get("run_id") or info["experiment_id"]])
            if "next_page_token" not in reply.body:
                return Found(labels, None)
            body = {**body, "page_token": reply.body["next_page_token"]}

    def _own(self, value: Any) -> Any:
        """The body with this side's ids for labels in double braces."""
        if isinstance(value, dict):
            return {key: self._own(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._own(part) for part in value]
        if isinstance(value, str):
            return re.sub(r"\{\{(.*?)\}\}", lambda match: str(self._side.values[match[1]]), value)
        return value
