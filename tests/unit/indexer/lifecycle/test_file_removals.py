"""Which files go with an item: its own, never another's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from file_remover import app as remover
from indexer.lifecycle import file_removals
from mlcore import artifacts, queues
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.file_removal_queue import Removal
from mlcore.repos.files import location_list
from mlcore.repos.files.location_list import LocationClaim
from mlcore.repos.removal import former_root_locations
from mlcore.repos.runs.core import runs


def experiment(workspace: str = "default", location: str = "mlflow-artifacts:/E") -> Raw:
    texts = {
        "type": "experiment",
        "experiment_id": "E",
        "workspace": workspace,
        "artifact_location": location,
    }
    return {name: {"S": text} for name, text in texts.items()}


def item(kind: str, **texts: str) -> Raw:
    return {
        name: {"S": text} for name, text in {"type": kind, "experiment_id": "E", **texts}.items()
    }


def sent(
    monkeypatch: pytest.MonkeyPatch,
    image: Raw,
    there: Raw | None,
    claims: Sequence[LocationClaim] = (),
    existing: Sequence[str] = (),
    **more: Any,
) -> list[dict[str, Any]]:
    """What the remover is told; ``claims`` are of experiments that are there, ``existing`` are runs
    that are in another experiment."""
    messages: list[queues.QueueMessage] = []
    monkeypatch.setenv(file_removals.QUEUE, "queue")
    monkeypatch.setattr(queues, "send", lambda _, batch: messages.extend(batch))
    monkeypatch.setattr(former_root_locations, "enter_locations", lambda _: True)
    monkeypatch.setattr(location_list, "is_complete", lambda: True)
    monkeypatch.setattr(location_list, "overlapping", lambda _: list(claims))
    monkeypatch.setattr(
        location_list, "existing_holders", lambda claimed, _: {claim.holder for claim in claimed}
    )
    monkeypatch.setattr(location_list, "remove_entry", lambda *_: None)
    monkeypatch.setattr(location_list, "remove_run_entry", lambda *_: None)
    monkeypatch.setattr(runs, "existing", lambda _: set(existing))

    def batch_get(places: list[Key]) -> list[Raw | None]:
        return [there for _ in places]

    monkeypatch.setattr(table, "batch_get", batch_get)
    record = {"OldImage": image, "ApproximateCreationDateTime": 5, **more}
    file_removals.send([record])
    return [json.loads(message.body) for message in messages]


def places(messages: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(message["key"], message["keep"]) for message in messages]


def test_a_run_and_a_model_lose_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/E/R/artifacts")
    messages = sent(monkeypatch, run, experiment("w"))
    assert places(messages) == [("workspaces/w/E/R/artifacts", [])]
    # A file may be written and its run removed within one second, which is all that is told.
    assert messages[0]["before_ms"] == 6000
    monkeypatch.setenv("ARTIFACT_BUCKET", "b")
    model = item("logged_model", model_id="m", artifact_location="s3://b/x/models/m/artifacts")
    assert places(sent(monkeypatch, model, experiment())) == [("x/models/m/artifacts", [])]
    other = item("logged_model", model_id="m", artifact_location="s3://other/models/m/artifacts")
    assert sent(monkeypatch, other, experiment()) == []


def test_what_has_another_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/E/other/artifacts")
    assert sent(monkeypatch, run, experiment()) == []


def test_a_run_that_is_still_there_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/E/R/artifacts")
    assert sent(monkeypatch, run, experiment(), NewImage=run) == []


def test_a_run_that_was_moved_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/E/R/artifacts")
    assert sent(monkeypatch, run, experiment(), existing=["R"]) == []
    assert sent(monkeypatch, run, experiment(), existing=["S"]) != []


def test_with_an_experiment_its_own_tree_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [(".internal/traces/E", []), (".internal/history/E", [])]
    assert places(sent(monkeypatch, experiment(), None)) == [("E", []), *ours]
    inside = LocationClaim("E/x", keys.experiment("F"), "F")
    assert places(sent(monkeypatch, experiment(), None, [inside])) == [("E", ["E/x"]), *ours]
    chosen = experiment(location="mlflow-artifacts:/shared")
    assert places(sent(monkeypatch, chosen, None)) == [("shared", []), *ours]
    shared = LocationClaim("shared", keys.experiment("F"), "F")
    assert places(sent(monkeypatch, chosen, None, [shared])) == ours
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/E/R/artifacts")
    assert sent(monkeypatch, run, None) == []
    run = item("run", run_id="R", artifact_uri="mlflow-artifacts:/shared/R/artifacts")
    assert places(sent(monkeypatch, run, None, [shared])) == [("shared/R/artifacts", [])]


def test_a_trace_says_nothing_about_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tags are its clients', and so is its id."""
    trace = item("trace", trace_id="tr-1") | {
        "tags": {"M": {"mlflow.artifactLocation": {"S": "mlflow-artifacts:/OTHER"}}}
    }
    messages = sent(monkeypatch, trace, experiment("w"))
    assert places(messages) == [
        ("workspaces/w/E/traces/tr-1", []),
        (".internal/workspaces/w/traces/E/tr-1", []),
        (".internal/traces/E/tr-1", []),
    ]
    moved = experiment() | {"former_workspaces": {"SS": ["w"]}}
    of_spans = [".internal/traces/E", ".internal/workspaces/w/traces/E"]
    assert [
        path for path, _ in places(sent(monkeypatch, trace, moved)) if path.startswith(".internal")
    ] == [f"{path}/tr-1" for path in of_spans]
    assert {path for path, _ in places(sent(monkeypatch, moved, None))} > set(of_spans)
    # Another trace may come by the same id within the second.
    assert {message["before_ms"] for message in messages} == {5000}
    assert sent(monkeypatch, item("trace", trace_id="tr/../1"), experiment()) == []
    encoded = item("trace", trace_id="tr%2Fother")
    assert places(sent(monkeypatch, encoded, experiment())) == [
        (".internal/traces/E/tr%2Fother", [])
    ]


def test_messages_that_fail_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, float]] = []

    class Store:
        def delete_older(self, key: str, before: float, keep: Sequence[str]) -> None:
            if key.endswith("bad"):
                raise OSError
            done.append((key, before))

    monkeypatch.setattr(artifacts, "store", Store)
    bodies = {
        "1": Removal("w", 1500, "workspaces/w/E"),
        "2": Removal("w", 1, "workspaces/w/bad"),
        "3": Removal("default", 1, ".internal/traces/E"),
    }
    records = [
        {"messageId": number, "body": json.dumps(body._asdict())} for number, body in bodies.items()
    ]
    answer = remover.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    with pytest.raises(remover.AllMessagesFailed):
        remover.handler({"Records": records[1:2]}, None)
    assert done == [("workspaces/w/E", 1.5), (".internal/traces/E", 0.001)]
