"""Searches of traces give what looking at every trace would give, however far the indexer is, and
cost what they find."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos import document, index_candidates
from mlcore.repos.traces import search as trace_search
from mlcore.repos.traces import span_packs
from mlcore.search import trace_match
from mlcore.search.trace_filter import parse_filter, parse_order_by
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.delivery import Delivery
from tests.contract.explain import Explained, explained
from tests.contract.full_text_setting import setting
from tests.contract.index_state import deliver, failing
from tests.contract.streams import following
from tests.contract.trace_calls import ask, export, span, start, tell
from tests.differential.search_samples import quoted

NAMES = ("Hannah", "ann", "Joanna", "AN N", "anna-ßé", "Bob", "x", "a%n_n#", "n" * 101)
STATES = ("OK", "ERROR", "IN_PROGRESS")
KEYS = ("team", "a b")
RUNS = ("r1", "r2")
SETTINGS = (
    None,
    None,
    ["traces.content"],
    ["traces.tags.*", "traces.metadata.*"],
    ["traces.tags.team"],
)
WRITES, QUERIES = 20, 18
MS = 1_700_000_000_000


@pytest.fixture
def _files(tmp_path: Path) -> Iterator[None]:
    with artifacts_in(tmp_path):
        yield


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of finding traces is taken with a handful of them."""
    monkeypatch.setattr(trace_search, "SMALL_TRACES", 3)
    monkeypatch.setattr(trace_search, "STREAMED_TRACES", 12)
    monkeypatch.setattr(trace_search, "READ_TOGETHER", 7)
    monkeypatch.setattr(trace_search, "CHECKED_TOGETHER", 2)
    monkeypatch.setattr(index_candidates, "PAGE_IDS", 5)
    monkeypatch.setattr(rebuild, "REQUEST_SECONDS", 0)


@pytest.mark.usefixtures("small_steps")
def test_search_is_looking_at_every_trace(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With requests killed, the indexer late, records repeated and shuffled, and another setting
    meanwhile."""
    ways: Counter[str] = Counter()
    with following(shared_store) as stream, explained() as searches:
        for seed in range(2 * EXAMPLES):
            rng = random.Random(seed)
            monkeypatch.setattr(document, "INLINE_BYTES", rng.choice((300_000, 400)))
            delivery = Delivery(rng, stream.fresh)
            setting(shared_store, rng.choice(SETTINGS))
            world = World(rng, shared_store.api.new_experiment(f"traces {seed}"))
            for _ in range(WRITES):
                # Some requests are killed on their way, and never repeated.
                with failing(rng.randrange(6) if rng.random() < 0.2 else None):
                    world.write()
                if rng.random() < 0.3:
                    delivery.some(rng.random())
            for _ in range(QUERIES):
                world.check()
                if rng.random() < 0.3:
                    world.write()
                if rng.random() < 0.3:
                    delivery.some(rng.choice((0.3, 1.0)))
                if rng.random() < 0.1:
                    setting(shared_store, rng.choice(SETTINGS))
                if rng.random() < 0.04:
                    rebuild.reindex(world.experiment_id)
            delivery.rest()
            for _ in range(2):  # what the setting asks for no more goes with the second
                rebuild.reindex(world.experiment_id)
            assert rebuild.verify(world.experiment_id, patience=0).findings == []
        setting(shared_store, None)
        ways.update(search.how for search in searches)
    assert len(ways) > 4, ways


@pytest.mark.usefixtures("small_steps")
def test_global_indexes_that_lag_are_no_matter(lagging_store: Store) -> None:
    world = World(random.Random(7), lagging_store.api.new_experiment("lagging"))
    for _ in range(15):
        world.write()
    for _ in range(10):
        world.check()


class World:
    """An experiment whose traces are written and searched at random."""

    def __init__(self, rng: random.Random, experiment_id: str) -> None:
        self.rng, self.experiment_id = rng, experiment_id
        self.ids: list[str] = []

    def write(self) -> None:
        rng = self.rng
        if not self.ids or rng.random() < 0.4:
            self.ids.append(f"tr-{uuid.UUID(int=rng.getrandbits(128)).hex}")
            (self._export if rng.random() < 0.5 else self._tell)(self.ids[-1])
            return
        trace_id, what = rng.choice(self.ids), rng.random()
        if what < 0.25:
            self._tell(trace_id)
        elif what < 0.4:
            self._export(trace_id)
        elif what < 0.6:
            key, value = rng.choice((*KEYS, "mlflow.traceName")), rng.choice(NAMES)
            ask("PATCH", f"2.0/traces/{trace_id}/tags", {"key": key, "value": value})
        elif what < 0.7:
            key = rng.choice((*KEYS, "mlflow.traceName"))
            ask("DELETE", f"2.0/traces/{trace_id}/tags", {"key": key})
        elif what < 0.8:
            body: dict[str, Any] = {
                "trace_ids": rng.sample(self.ids, 1),
                "run_id": rng.choice(RUNS),
            }
            ask("POST", "2.0/traces/link-to-run", body)
        elif what < 0.87:
            body = {"trace_id": trace_id, "prompt_versions": [{"name": "p", "version": "1"}]}
            ask("POST", "2.0/traces/link-prompts", body)
        elif what < 0.93:
            given = {
                "assessment_name": "ok",
                "source": {"source_type": "CODE", "source_id": "c"},
                "feedback": {"value": rng.random() < 0.5},
            }
            ask("POST", f"3.0/traces/{trace_id}/assessments", {"assessment": given})
        else:
            body = {"experiment_id": self.experiment_id, "request_ids": [trace_id]}
            ask("POST", "2.0/traces/delete-traces", body)

    def _export(self, trace_id: str) -> None:
        rng = self.rng
        numbers = rng.sample(range(1, 4), rng.choice((1, 1, 2)))
        spans = []
        for number in numbers:
            attributes: dict[str, Any] = {
                "k": rng.choice(NAMES),
                "session__id": rng.choice(("s1", "s2")),
            }
            made = span(trace_id[3:], number, None if number == 1 else 1, **attributes)
            spans.append({**made, "name": rng.choice(NAMES)})
        export(self.experiment_id, spans)

    def _tell(self, trace_id: str) -> None:
        rng = self.rng
        tags = {key: rng.choice(NAMES) for key in KEYS if rng.random() < 0.5}
        metadata = {key: rng.choice(NAMES) for key in KEYS if rng.random() < 0.3}
        if rng.random() < 0.7:
            tags["mlflow.traceName"] = rng.choice(NAMES)
        if rng.random() < 0.5:
            metadata["mlflow.sourceRun"] = rng.choice(RUNS)
        if rng.random() < 0.4:
            metadata["mlflow.modelId"] = rng.choice(("m-1", "m-2"))
        if rng.random() < 0.4:
            metadata["mlflow.trace.session"] = rng.choice(("s1", "s2"))
        info: dict[str, Any] = {
            "request_time": f"2023-11-14T22:13:2{rng.randrange(4)}.000Z",
            "state": rng.choice(STATES),
            "tags": tags,
            "trace_metadata": metadata,
        }
        if rng.random() < 0.4:
            info["client_request_id"] = rng.choice(NAMES) + trace_id[:6]
        body = start(self.experiment_id, trace_id, **info)
        ask("POST", "3.0/traces", body)

    def check(self) -> None:
        rng = self.rng
        clauses = [self._clause() for _ in range(rng.choice((0, 1, 1, 2)))]
        ordering = rng.choice(
            (
                *([], [], ["timestamp"], ["timestamp DESC", "name"], ["name"], ["name DESC"]),
                *(["status"], ["status DESC", "timestamp DESC"], ["execution_time DESC"]),
                *(["tags.team"], ["timestamp", "status"], ["request_id"]),
            )
        )
        text, limit = " AND ".join(clauses), rng.choice((2, 3, 100))
        pages = [trace_id for page in self._pages(text, ordering, limit) for trace_id in page]
        assert pages == self._looked_at(text, ordering), (text, ordering, limit)

    def _pages(self, text: str, ordering: list[str], limit: int) -> Iterator[list[str]]:
        experiment = {"experiment_id": self.experiment_id}
        body: dict[str, Any] = {
            "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment}],
            "filter": text,
            "order_by": ordering,
            "max_results": limit,
        }
        while True:
            answer = tell("POST", "3.0/traces/search", body)
            yield [trace["trace_id"] for trace in answer.get("traces", ())]
            if "next_page_token" not in answer:
                return
            body["page_token"] = answer["next_page_token"]

    def _looked_at(self, text: str, ordering: list[str]) -> list[str]:
        key_of = trace_match.sort_key(parse_order_by(ordering))
        every = trace_search.matching([self.experiment_id], "default", parse_filter(text))
        return [trace.trace_id for trace in sorted(every, key=key_of)]

    def _clause(self) -> str:
        rng = self.rng
        field = rng.choice(
            (
                *("name", "name", "name", "tags.team", "tags.`a b`", "metadata.team", "run_id"),
                *("client_request_id", "request_id", "status", "timestamp", "prompt", "feedback"),
                *("model", "session", "trace.text", "span.content", "span.name"),
                "span.attributes.k",
            )
        )
        owner = rng.choice(NAMES)
        begin = rng.randrange(len(owner))
        piece = owner[begin : begin + rng.choice((2, 3, 4, 200))]
        pattern = rng.choice(("", "%", "%", "_")) + piece + rng.choice(("", "%", "%", "_"))
        if field == "run_id":
            return f"run_id = '{rng.choice(RUNS)}'"
        if field == "request_id":
            some = rng.sample(self.ids, min(len(self.ids), 2))
            return f"request_id IN ({', '.join(map(repr, some))})"
        if field == "client_request_id" and rng.random() < 0.7:
            wanted = quoted(rng, owner + rng.choice(self.ids)[:6])
            return f"{field} = {wanted}" if rng.random() < 0.5 else f"{field} IN ({wanted}, 'x')"
        if field == "status":
            return f"status {rng.choice(('=', '!='))} '{rng.choice(STATES)}'"
        if field == "timestamp":
            return f"timestamp {rng.choice(('>=', '<'))} {MS + 1000 * rng.randrange(4)}"
        if field == "prompt":
            return f"prompt = '{rng.choice(('p/1', 'p/2'))}'"
        if field == "feedback":
            return f"feedback.ok = '{rng.choice(('true', 'false'))}'"
        if field == "model":
            return f"metadata.`mlflow.modelId` {rng.choice(('=', '=', 'LIKE'))} 'm-1'"
        if field == "session":
            return f"metadata.`mlflow.trace.session` = '{rng.choice(('s1', 's2'))}'"
        signs = ["LIKE", "ILIKE"]
        if not field.startswith(("trace", "span.c", "span.a")):
            signs += ["=", "RLIKE", "!="]
        sign = rng.choice(signs)
        wanted = owner if sign in ("=", "!=") else piece if sign == "RLIKE" else pattern
        return f"{field} {sign} {quoted(rng, wanted)}"


@pytest.mark.usefixtures("_files")
def test_contents_of_spans_are_found_in_the_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of ten traces hold the word, in an item and in a file, and one in spans that the indexer
    has not seen; contents in files are looked at always."""
    monkeypatch.setattr(trace_search, "SMALL_TRACES", 3)
    setting(store, ["traces.content"])
    experiment_id = store.api.new_experiment("contents")
    ids = [f"tr-{number:032x}" for number in range(10)]

    def send(number: int, text: str, order: int = 1) -> None:
        spans = [span(ids[number][3:], order, mlflow__spanInputs={"q": text})]
        assert export(experiment_id, spans).status == 200

    def matches(text: str) -> tuple[list[str], Explained]:
        experiment = {"experiment_id": experiment_id}
        locations = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment}]
        with explained() as searches:
            answer = tell("POST", "3.0/traces/search", {"locations": locations, "filter": text})
        return [trace["trace_id"] for trace in answer.get("traces", ())], searches[0]

    with following(store) as stream:
        for number in range(10):
            with monkeypatch.context() as patch:
                patch.setattr(span_packs, "ITEM_BYTES", 0 if number == 5 else 100_000)
                send(number, "a needle, then" if number in (5, 7) else "hay")
        records = stream.fresh()
        assert deliver(records) == len(records)
        for text in (
            "trace.text ILIKE '%NEEDLE%'",
            "span.attributes.mlflow.spanInputs LIKE '%eedl%'",
        ):
            names, search = matches(text)
            assert sorted(names) == [ids[5], ids[7]]
            assert (search.how, search.runs) == ("TextLookups", 2)
        send(9, "another needle", order=2)
        names, search = matches("span.content LIKE '%needle, %'")
        assert sorted(names) == [ids[5], ids[7]]
        names, search = matches("span.content LIKE '%other needle%'")
        assert (names, search.how, search.runs) == ([ids[9]], "TextLookups", 2)
        tell(
            "POST", "2.0/traces/delete-traces", {"experiment_id": experiment_id, "request_ids": ids}
        )
        records = stream.fresh()
        assert deliver(records) == len(records)
    left = [item["SK"]["S"] for item in table.query_all(keys.experiment(experiment_id).pk)]
    assert not [
        sort_key
        for sort_key in left
        if "trace" in sort_key or sort_key.startswith(("T#", "PENDING"))
    ]
    setting(store, None)


@pytest.mark.parametrize("order", ["timestamp_ms ASC", "timestamp_ms DESC"])
def test_pages_end_at_the_earliest_and_latest_times(store: Store, order: str) -> None:
    experiment = {"experiment_id": store.api.new_experiment(f"ends {order}")}
    for time in (-(2**63), -(2**63), 0, 2**63 - 1, 2**63 - 1):
        made = tell("POST", "2.0/traces", {**experiment, "timestamp_ms": time})
        path = f"2.0/traces/{made['trace_info']['request_id']}"
        ended = tell("PATCH", path, {"timestamp_ms": 2**63 - 1, "status": "OK"})["trace_info"]
        assert int(ended["execution_time_ms"]) == min(2**63 - 1 - time, 2**63 - 1)
    query: dict[str, Any] = {
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment}],
        "max_results": 1,
        "order_by": [order],
    }
    found: set[str] = set()
    while page := tell("POST", "3.0/traces/search", query):
        found |= {trace["trace_id"] for trace in page.get("traces", ())}
        if "next_page_token" not in page:
            break
        query["page_token"] = page["next_page_token"]
    assert len(found) == 5
