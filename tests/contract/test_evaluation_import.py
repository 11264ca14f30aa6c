"""What quality is judged with comes over from an MLflow server as it is: once, again, and after a
kill at any write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.repos.evaluation import entity_experiments
from mlcore.repos.gateway import configuration
from operate.transfer import command, datasets
from operate.transfer.command import TransferOptions
from operate.transfer.mlflow_client import SourceFailed
from tests.contract import gateway_world, trace_calls
from tests.contract.api import Api
from tests.contract.conftest import Store, pointed
from tests.contract.evaluation_calls import YES_NO, new_dataset, sent, upsert
from tests.contract.old_product import (
    API_3,
    Answers,
    Stock,
    killed_after,
    kills_until_done,
    recorded,
)
from tests.contract.sealing import seal_here
from tests.engines import Engine, create_table

TRACES = [f"tr-{number:032x}" for number in range(3)]
PAGE = 2


def populate() -> str:
    """The id of the experiment that is judged."""
    api = Api()
    gone: str = api.post("experiments/create", name="gone")["experiment_id"]
    api.post("experiments/delete", experiment_id=gone)
    experiment_id: str = api.post("experiments/create", name="judged")["experiment_id"]
    here = {"experiment_id": experiment_id}
    make_traces(experiment_id)
    for words in ("is it tidy?", "is it clean?", "is it neat?"):
        scorer = {"name": "tidy", "instructions_judge_pydantic_data": {"instructions": words}}
        register(experiment_id, "tidy", scorer)
    sent("DELETE", "scorers/delete", {**here, "name": "tidy", "version": 1})
    asking = {"instructions_judge_pydantic_data": {"model": "gateway:/judge"}}
    register(experiment_id, "asks", {"name": "asks", **asking})
    schema = {**here, "name": "good", "type": "FEEDBACK", "input": YES_NO, "instruction": "why?"}
    good = sent("POST", "label-schemas/create", schema)["label_schema"]["schema_id"]
    choice = {"categorical": {"options": ["a", "b"], "multi_select": False}}
    schema = {**here, "name": "kind", "type": "EXPECTATION", "input": choice}
    sent("POST", "label-schemas/create", schema)
    listed = sent("GET", "label-schemas/list", **here)["label_schemas"]
    (default,) = [
        label_schema["schema_id"] for label_schema in listed if label_schema["is_default"]
    ]
    queue = {"name": "Friday", "queue_type": "CUSTOM", "users": ["ann", "bob"]}
    made = sent("POST", "review-queues/create", {**here, **queue, "schema_ids": [good, default]})
    queue_id = made["review_queue"]["queue_id"]
    sent("POST", "review-queues/items/add", {"queue_id": queue_id, "item_ids": TRACES})
    done = {"queue_id": queue_id, "item_id": TRACES[1], "status": "COMPLETE"}
    sent("POST", "review-queues/items/set-status", {**done, "completed_by": "ann"})
    sent("POST", "review-queues/get-or-create-user", {**here, "user": "ann"})
    for name, more in (("slow", {"severity": "high", "categories": ["latency"]}), ("odd", {})):
        sent("POST", "issues", {**here, "name": name, "description": "d", **more})
    dataset_id = new_dataset(experiment_ids=[experiment_id], tags='{"k": "v"}')
    source = {"source_type": "TRACE", "source_data": {"trace_id": TRACES[0]}}
    records = [{"inputs": {"n": number}, "outputs": {"o": "ü"}} for number in range(3)]
    upsert(dataset_id, *records)
    upsert(dataset_id, {"inputs": {"n": 7}, "expectations": {"e": 1}, "source": source})
    new_dataset(name="empty")
    return experiment_id


def make_traces(experiment_id: str) -> None:
    """Queues show the items whose traces are there, as an import of everything brings them."""
    for trace_id in TRACES:
        trace_calls.tell("POST", "3.0/traces", trace_calls.start(experiment_id, trace_id))


def register(experiment_id: str, name: str, scorer: dict[str, Any]) -> None:
    fields = {"experiment_id": experiment_id, "name": name, "serialized_scorer": json.dumps(scorer)}
    sent("POST", "scorers/register", fields)


def judge_endpoint() -> str:
    return gateway_world.endpoint("judge", [gateway_world.model("m", "openai")])


@pytest.fixture
def source_id(
    store: Store, table_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[str]:
    """The server's id of the experiment; the product works on another table, which has an
    experiment of this name under another id."""
    monkeypatch.setattr(command, "Server", Stock)
    monkeypatch.setattr(Stock, "answers", {})
    monkeypatch.setattr(datasets, "_RECORDS", PAGE)
    seal_here(monkeypatch, tmp_path)
    judge_endpoint()
    experiment_id = populate()
    recorded(compared)
    with pointed(table_engine.endpoint, create_table(table_engine.endpoint)) as api:
        mine = api.post("experiments/create", name="judged")["experiment_id"]
        make_traces(mine)
        sent("GET", "label-schemas/list", experiment_id=mine)  # now it has a default of its own
        judge_endpoint()
        yield experiment_id


def transfer(*, write: bool = True, journal: Path | None = None) -> int:
    return command.run(TransferOptions("http://old", [], ("evaluation",), journal, write))


def compared() -> None:
    """The product differs from itself in nothing."""
    assert transfer(write=False) == 0


def target_id() -> str:
    experiment = Api().get("experiments/get-by-name", experiment_name="judged")["experiment"]
    return str(experiment["experiment_id"])


def plain(answers: Answers, experiment_id: str) -> list[str]:
    """All that is told, but for tokens of pages, and for ids that are each table's own: of the
    experiment, and of default label schemas."""
    own = {experiment_id: "HERE"}
    for answer in answers.values():
        for schema in answer.get("label_schemas", ()):
            if schema["is_default"]:
                owner = own.get(schema["experiment_id"], schema["experiment_id"])
                own[schema["schema_id"]] = f"default of {owner}"
    texts = []
    for key, answer in answers.items():
        method, path, fields = json.loads(key)
        if not path.startswith(API_3):
            continue
        shown = {**answer, "records": json.loads(answer.get("records", "[]"))}
        texts.append(json.dumps(_mapped([method, path, fields, shown], own), sort_keys=True))
    return sorted(texts)


def _mapped(value: Any, own: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            # A scorer tells its experiment as a number.
            name: own.get(str(item), str(item)) if name == "experiment_id" else _mapped(item, own)
            for name, item in value.items()
            if "page_token" not in name
        }
    if isinstance(value, list):
        mapped = [_mapped(item, own) for item in value]
        if mapped and all(isinstance(item, dict) and "schema_id" in item for item in mapped):
            # Those of one millisecond are in the order of their ids, which differ.
            return sorted(mapped, key=lambda schema: str(schema["name"]))
        return sorted(mapped) if all(isinstance(item, str) for item in mapped) else mapped
    return own.get(value, value) if isinstance(value, str) else value


def test_it_comes_over_once(source_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source_answers = dict(Stock.answers)
    assert transfer(write=False) == 1
    assert transfer() == 0
    mine = target_id()
    assert mine != source_id
    assert transfer(write=False) == 0
    with monkeypatch.context() as patch:
        killed_after(0, patch)
        assert transfer() == 0
    assert plain(recorded(compared), mine) == plain(source_answers, source_id)
    # Endpoints know who asks them, and records are known by what is in them.
    (endpoint,) = configuration.read("default").endpoints.values()
    assert [binding.display_name for binding in endpoint.bindings] == ["asks"]
    (dataset,) = sent("POST", "datasets/search", {"filter_string": "name = 'd'"})["datasets"]
    again = upsert(dataset["dataset_id"], {"inputs": {"n": 1}, "tags": {"k": "v"}})
    assert again.body == {"inserted_count": 0, "updated_count": 1}
    scorers = sent("GET", "scorers/list", experiment_id=mine)["scorers"]
    assert {entity_experiments.experiment_of(scorer["scorer_id"]) for scorer in scorers} == {mine}


def test_a_killed_import_goes_on(source_id: str) -> None:
    """Each attempt gets one write further than the last."""
    source_answers = dict(Stock.answers)
    assert kills_until_done(transfer) > 3
    assert plain(recorded(compared), target_id()) == plain(source_answers, source_id)


def test_differences_are_named(source_id: str, tmp_path: Path, capsys: Any) -> None:
    journal = tmp_path / "journal"
    assert transfer(journal=journal) == 0
    answers = Stock.answers
    mine = target_id()
    # At the target somebody changes what came, and makes something.
    sent("DELETE", "scorers/delete", {"experiment_id": mine, "name": "tidy", "version": 3})
    own = sent("POST", "issues", {"experiment_id": mine, "name": "own", "description": "d"})
    # On the server an issue is settled and another is gone, as is a record.
    (issues,) = [answer["issues"] for answer in answers.values() if "issues" in answer]
    changed, gone = issues[0], issues.pop()
    changed["status"], changed["last_updated_timestamp"] = "resolved", 5
    capsys.readouterr()
    assert transfer(write=False, journal=journal) == 1
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert "scorer 'tidy' of experiment 'judged': versions.3: " in output.out
    assert f'issue {changed["issue_id"]}: status: "resolved" ≠ "pending"' in lines
    assert f"issue {gone['issue_id']}: deleted on the server" in lines
    assert f"issue {own['issue']['issue_id']}: only in the target" in output.err.splitlines()
    assert transfer(journal=journal) == 0
    shown = sent("GET", f"issues/{changed['issue_id']}")["issue"]
    assert (shown["status"], shown["last_updated_timestamp"]) == ("resolved", 5)
    versions = sent("GET", "scorers/versions", experiment_id=mine, name="tidy")["scorers"]
    assert [version["scorer_version"] for version in versions] == [2, 3]


def test_a_judge_without_its_endpoint_waits(source_id: str, capsys: Any) -> None:
    (endpoint,) = configuration.read("default").endpoints.values()
    gateway_world.configure("endpoints/update", {"endpoint_id": endpoint.endpoint_id, "name": "x"})
    assert transfer() == 1
    output = capsys.readouterr()
    assert "scorer 'asks' of experiment 'judged': GatewayEndpoint not found (name='judge')" in (
        output.err
    )
    gateway_world.configure(
        "endpoints/update", {"endpoint_id": endpoint.endpoint_id, "name": "judge"}
    )
    assert transfer() == 0


@pytest.mark.parametrize("code", ["", "FEATURE_DISABLED"])
def test_a_server_that_evaluates_nothing_is_asked_no_more(
    source_id: str, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    paths: list[str] = []

    class Old(Stock):
        def _answer(self, method: str, path: str, fields: dict[str, Any]) -> Any:
            if path.startswith(API_3):
                paths.append(path.removeprefix(API_3))
                if "datasets" in path:
                    raise SourceFailed(500 if code else 404, "no", code)
                raise SourceFailed(404, "Not Found")
            return super()._answer(method, path, fields)

    monkeypatch.setattr(command, "Server", Old)
    assert transfer() == 0
    assert "datasets/search" in paths
    assert not any(path.startswith(("scorers", "label-schemas", "issues")) for path in paths)
    assert sent("POST", "datasets/search", {}) == {}
