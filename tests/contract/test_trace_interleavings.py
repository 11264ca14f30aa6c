"""Clients that tell of one trace at once, and one who reads it: their DynamoDB calls meet in every
order, and some never come."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import artifacts
from mlcore.repos.traces import span_packs
from tests.contract.conftest import Store, examples, forget
from tests.contract.interleaved_calls import interleaved
from tests.contract.trace_calls import Fields, ask, export, span_ids, start
from tests.contract.trace_story import TOLD, new_trace, seen, story

RESOURCE = {"service.name": "svc", "zone": 3}
Step = Callable[[], int]


@pytest.fixture(scope="module", autouse=True)
def _files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARTIFACT_FOLDER", str(tmp_path_factory.mktemp("files")))
        artifacts.store.cache_clear()
        yield
    artifacts.store.cache_clear()


def started(trace: str) -> Step:
    return lambda: ask("POST", "3.0/traces", start("0", f"tr-{trace}", **TOLD)).status


def tagged(trace: str) -> Step:
    path = f"3.0/traces/tr-{trace}/tags"
    return lambda: ask("PATCH", path, {"key": "mine", "value": "x"}).status


def exported(spans: list[Fields]) -> Step:
    return lambda: export("0", spans, RESOURCE).status


def test_spans_that_change_nothing_but_what_counts_twice(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span without tokens of its own tells which spans are below it: it comes between what
    another export reads for its sums and what that one writes."""
    once, at_once = new_trace(), new_trace()
    assert export("0", story(once), RESOURCE).status == 200
    spans = {int(span["spanId"], 16): span for span in story(at_once)}
    assert export("0", [spans[1]], RESOURCE).status == 200
    nodes = span_packs.nodes

    def meanwhile(owner: span_packs.Owner) -> dict[str, span_packs.Node]:
        known_nodes = nodes(owner)
        monkeypatch.setattr(span_packs, "nodes", nodes)
        assert export("0", [spans[5]], RESOURCE).status == 200
        return known_nodes

    monkeypatch.setattr(span_packs, "nodes", meanwhile)
    assert export("0", [spans[number] for number in (2, 3, 4, 6)], RESOURCE).status == 200
    assert seen(at_once) == seen(once)


@examples(60)
@given(data=st.data())
def test_writers_of_a_trace(shared_store: Store, data: st.DataObject) -> None:
    once, at_once = new_trace(), new_trace()
    assert export("0", story(once), RESOURCE).status == 200
    assert started(once)() == 200
    assert tagged(once)() == 200
    spans = data.draw(st.permutations(story(at_once)))
    cuts = sorted(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    pieces = [spans[a:b] for a, b in itertools.pairwise([0, *cuts, 6]) if a < b]
    steps: list[tuple[Step, set[str]]] = [
        (exported(piece), {span["spanId"] for span in piece}) for piece in pieces
    ]
    steps.append((started(at_once), set()))
    steps += data.draw(st.lists(st.sampled_from(steps), max_size=2))
    order = data.draw(st.permutations(steps))
    share = data.draw(st.integers(0, len(order)))
    deaths = data.draw(st.dictionaries(st.integers(0, 1), st.integers(1, 9), max_size=1))
    turn = random.Random(data.draw(st.integers(0, 2**32)))
    order_of_calls = (turn.randrange(3) for _ in itertools.count())
    acknowledged: set[str] = set()

    def write(share: list[tuple[Step, set[str]]]) -> None:
        for step, ids in share:
            assert step() == 200
            acknowledged.update(ids)

    def read() -> None:
        for _ in range(4):
            wanted = set(acknowledged)
            answer = ask("GET", "3.0/traces/get", trace_id=f"tr-{at_once}", allow_partial="true")
            if wanted:
                assert answer.status == 200, answer
                results = set(span_ids(answer.body["trace"].get("spans", [])))
                assert wanted <= results, "an acknowledged span is out of sight"

    writers: list[Callable[[], None]] = [
        partial(write, order[:share]),
        partial(write, order[share:]),
    ]
    interleaved(order_of_calls, [*writers, read], after=forget, deaths=deaths)
    for number in deaths:
        writers[number]()
    assert tagged(at_once)() == 200
    forget()
    assert seen(at_once) == seen(once)
    answer = ask("GET", "3.0/traces/get", trace_id=f"tr-{at_once}")
    assert answer.status == 200
    assert "mlflow.trace.spansLocation" in answer.body["trace"]["trace_info"]["tags"]
