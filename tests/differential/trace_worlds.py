"""Traces of every kind for random searches, on the product and on the stock server."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from tests.differential.trace_pair import ID, START, Two, new_id, span, text

COUNT = int(os.environ.get("SEARCH_SAMPLES", "300"))


SEED = int(os.environ.get("SEARCH_SEED", "20"))


TRACES = 24


MS = START // 1_000_000


LOCATIONS = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": ID}}]


TEXTS = ("a", "A", "ab", "b%", "é", "", "10", 'q"r')


NAMES = ("chat", "Chat", "agent run", "é")


SESSIONS = ("s1", "s2", "s3", "")


RUNS = ("r1", "r2")


TYPES = ("LLM", "TOOL", "CHAIN")


KEYS = ("k", "a b", "é.x")


VALUES: tuple[Any, ...] = (True, False, 0.5, 3, -1, "yes", "No", "good", "5", None, [1], {"a": "b"})


JUDGED = ("quality", "ok b", "name", "timestamp")


class World:
    """The traces of both servers."""

    def __init__(self, two: Two, rng: random.Random) -> None:
        self.two, self.rng = two, rng
        self.ids: list[str] = []
        for _ in range(TRACES):
            self._tell()
        linked = {"trace_ids": rng.sample(self.ids, 6), "run_id": "r1"}
        two.same("POST", "/api/2.0/mlflow/traces/link-to-run", linked)
        for trace_id in rng.sample(self.ids, 5):
            body = {"trace_id": trace_id, "prompt_versions": [{"name": "p", "version": "1"}]}
            two.same("POST", "/api/2.0/mlflow/traces/link-prompts", body)
        for trace_id in self.ids:
            two.same("GET", f"/api/2.0/mlflow/traces/{trace_id}/info")

    def _tell(self) -> None:
        rng, trace = self.rng, new_id()
        self.ids.append(f"tr-{trace}")
        at = rng.choice((0, 0, 5, 1000, 86_400_000, 3_600_000))
        chance = rng.random()
        if chance < 0.8:
            spans = [self._span(trace, 1, 0, at)]
            spans += [self._span(trace, n, rng.randrange(1, n), at) for n in (2, 3)][
                : rng.randrange(3)
            ]
            self.two.export(spans)
        if chance > 0.4:
            self._info(trace, at, spans=chance < 0.8)
        for _ in range(rng.randrange(3)):
            self._assess(trace)

    def _span(self, trace: str, number: int, parent: int, at: int) -> Any:
        rng = self.rng
        attributes = [text("mlflow.spanType", rng.choice(TYPES))]
        if rng.random() < 0.6:
            attributes.append(text(rng.choice(KEYS), rng.choice(TEXTS)))
        if rng.random() < 0.4:
            attributes.append(text("mlflow.spanInputs", {"q": rng.choice(TEXTS), "n": 5}))
        if rng.random() < 0.5:
            costs = {"input_cost": 0.25, "output_cost": rng.choice((0.5, 2)), "total_cost": 1.5}
            if rng.random() < 0.5:
                attributes.append(text("mlflow.llm.cost", costs))
            attributes.append(text("mlflow.llm.model", rng.choice(("gpt", "llama", "gpt-4o"))))
        if rng.random() < 0.5:
            usage = {"input_tokens": rng.randrange(9), "output_tokens": 4, "total_tokens": 7}
            attributes.append(text("mlflow.chat.tokenUsage", usage))
        if not parent and rng.random() < 0.5:
            attributes.append(text("session.id", rng.choice(SESSIONS[:3])))
        status = rng.choice(({"code": 1}, {"code": 2, "message": "m"}, {}))
        new_span = span(trace, number, parent, at + number, *attributes, status=status)
        new_span["name"] = rng.choice(NAMES)
        return new_span

    def _info(self, trace: str, at: int, spans: bool) -> None:
        rng = self.rng
        metadata = {key: rng.choice(TEXTS) for key in KEYS if rng.random() < 0.4}
        if rng.random() < 0.6:
            metadata["mlflow.trace.session"] = rng.choice(SESSIONS)
        if rng.random() < 0.4:
            metadata["mlflow.sourceRun"] = rng.choice(RUNS)
        if rng.random() < 0.4:
            metadata["mlflow.trace.tokenUsage"] = json.dumps(
                {"input_tokens": 1, "output_tokens": rng.randrange(4), "total_tokens": 5}
            )
        info: Any = {
            "trace_id": f"tr-{trace}",
            "trace_location": LOCATIONS[0],
            "request_time": f"2023-11-14T22:13:{20 + at % 7}.{at % 1000:03d}Z",
            "state": rng.choice(("OK", "ERROR")),
            "trace_metadata": metadata,
            "tags": {key: rng.choice(TEXTS) for key in KEYS if rng.random() < 0.4},
        }
        if spans or rng.random() < 0.7:
            info["execution_duration"] = rng.choice(("0.001s", "1.5s", "0.500s"))
        if not spans:
            info["state"] = rng.choice(("OK", "ERROR", "IN_PROGRESS"))
        if rng.random() < 0.5:
            info["client_request_id"] = rng.choice(TEXTS)
        if rng.random() < 0.7:
            info["tags"]["mlflow.traceName"] = rng.choice(NAMES)
        # Of what is left out here, what spans say counts: see "Decision 14".
        body = {"trace": {"trace_info": info}}
        for side in (self.two.stock, self.two.product):
            assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200

    def _assess(self, trace: str) -> None:
        rng = self.rng
        kind = rng.choice(("feedback", "feedback", "expectation", "issue"))
        content = {"issue_name": "boo"} if kind == "issue" else {"value": rng.choice(VALUES)}
        given = {
            "assessment_id": f"a-{new_id()}",
            "assessment_name": rng.choice(JUDGED),
            "source": {"source_type": "CODE", "source_id": "c"},
            kind: content,
        }
        if rng.random() < 0.4:
            given["metadata"] = {rng.choice(("mlflow.trace.session", "x")): "s1"}
        path = f"/api/3.0/mlflow/traces/tr-{trace}/assessments"
        self.two.same("POST", path, {"assessment": given})
        if rng.random() < 0.2 and kind == "feedback":
            over = {**given, "assessment_id": f"a-{new_id()}", "overrides": given["assessment_id"]}
            self.two.same("POST", path, {"assessment": over})


@pytest.fixture(scope="module")
def world(stock_url: str, product_url: str) -> World:
    return World(Two(stock_url, product_url), random.Random(SEED))
