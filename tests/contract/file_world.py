"""A world of experiments, runs, models and versions with files, in places that overlap as somebody
chose; keeps its own account of who put what where, and knows nothing of how removers decide."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import indexer.app
from file_remover import app as remover
from mlcore import artifacts as port
from mlcore.artifacts.local_folder_store import Folder
from mlcore.artifacts.paths import covers
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.ids import new_ulid
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import garbage
from tests.contract.conftest import Store
from tests.contract.streams import Stream

NUMBERS = itertools.count()
SCHEME = "mlflow-artifacts:/"


class Entity(NamedTuple):
    kind: str
    item_id: str
    experiment_id: str
    folder: str


class World:
    """``files`` maps each file to the entity that it is of. ``left`` are those that a model version
    kept until it was the last to have them: where no experiment is around nobody takes them."""

    def __init__(self, store: Store, folder: Folder, stream: Stream) -> None:
        self.store, self.folder, self.stream = store, folder, stream
        self.experiments: list[Entity] = []
        self.parts: list[Entity] = []
        self.versions: list[Entity] = []
        self.gone: set[str] = set()
        self.files: dict[str, Entity] = {}
        self.left: set[str] = set()
        self.announced: list[str] = []
        self.team = f"team{next(NUMBERS)}"

    # ------------------------------------------------------------------ making

    def places(self) -> list[str]:
        """Where a new experiment may be put: everywhere that is anybody's, and beside."""
        results = [self.team, f"{self.team}/sub", f"{self.team}/models", f"{self.team}/sub/deep"]
        for entity in (*self.experiments, *self.parts):
            results += [entity.folder, f"{entity.folder}/x", f"{entity.folder}/models"]
            results.append(entity.folder.rpartition("/")[0] or entity.folder)
        return list(dict.fromkeys(results))

    def experiment(self, folder: str | None) -> None:
        name = f"e{next(NUMBERS)}"
        location = {} if folder is None else {"artifact_location": SCHEME + folder}
        experiment_id = self.store.api.new_experiment(name, **location)
        self._enter(Entity("experiment", experiment_id, experiment_id, folder or experiment_id))

    def announce(self) -> None:
        """Somebody takes the place of an experiment that nobody has made yet."""
        experiment_id = new_ulid()
        self.announced.append(experiment_id)
        self.experiment(experiment_id)

    def arrive(self) -> None:
        """And there it is."""
        if self.announced:
            experiment_id = self.announced.pop()
            made = Experiment(
                experiment_id=experiment_id,
                name=f"e{next(NUMBERS)}",
                artifact_location=experiments.default_location(experiment_id),
                lifecycle_stage=ACTIVE,
                creation_time=1,
                last_update_time=1,
                tags={},
                workspace="default",
            )
            experiments.create(made)
            self._enter(Entity("experiment", experiment_id, experiment_id, experiment_id))

    def run(self, experiment: Entity) -> None:
        run_id = self.store.api.new_run(experiment.item_id)
        folder = f"{experiment.folder}/{run_id}/artifacts"
        self._enter(Entity("run", run_id, experiment.item_id, folder))

    def model(self, experiment: Entity) -> None:
        made = self.store.api.post("logged-models", experiment_id=experiment.item_id, name="m")
        model_id = made["model"]["info"]["model_id"]
        folder = f"{experiment.folder}/models/{model_id}/artifacts"
        self._enter(Entity("logged_model", model_id, experiment.item_id, folder))

    def version(self, part: Entity) -> None:
        """Of a run or a logged model, by its absolute path."""
        name = f"r{next(NUMBERS)}"
        api = self.store.api
        api.post("registered-models/create", name=name)
        by = {"run_id": part.item_id} if part.kind == "run" else {"model_id": part.item_id}
        source = SCHEME + part.folder
        api.post("model-versions/create", name=name, source=source, **by)
        self.versions.append(Entity("version", name, part.experiment_id, part.folder))

    def _enter(self, entity: Entity) -> None:
        (self.experiments if entity.kind == "experiment" else self.parts).append(entity)
        file = f"{entity.folder}/f{next(NUMBERS)}"
        self.folder.put(file, b"x")
        self.files[file] = entity

    # ------------------------------------------------------------------ ends

    def delete(self, entity: Entity) -> None:
        api = self.store.api
        if entity.kind == "experiment":
            api.post("experiments/delete", experiment_id=entity.item_id)
        elif entity.kind == "run":
            api.post("runs/delete", run_id=entity.item_id)
        elif entity.kind == "logged_model":
            assert api.ask("DELETE", f"logged-models/{entity.item_id}").status == 200
        else:
            assert api.ask("DELETE", "registered-models/delete", name=entity.item_id).status == 200
            self.versions.remove(entity)
            there, alive = self.alive()
            places = [
                experiment.folder for experiment in self.experiments if experiment.item_id in there
            ]
            self.left |= {
                file
                for file, owner in self.files.items()
                if covers(entity.folder, file)
                and owner.item_id not in there | alive
                and not any(covers(folder, file) for folder in places)
            }

    def collect(self) -> None:
        """As ``gc`` does."""
        self.follow()
        for removable in garbage.find(int(time.time() * 1000) + 1000):
            garbage.remove(removable)
            garbage.remove(removable)
        self.follow()

    def expire(self, entity: Entity) -> None:
        """DynamoDB deletes the item, the indexer sees it go, the remover is told."""
        self.follow()
        self.store.direct.delete_item(TableName=self.store.table, Key=_key_of(entity))
        self.follow()

    def follow(self) -> None:
        """Every record through the indexer, until nothing is new."""
        while records := self.stream.fresh():
            assert indexer.app.index(records) is None

    def remaining(self) -> set[str]:
        """The files of the store."""
        root = self.folder.files
        paths = (path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix() for path in paths}

    def alive(self) -> tuple[set[str], set[str]]:
        """Ids of experiments that are there, and of what is there in them."""
        there = self._found({e.item_id: _key_of(e) for e in self.experiments})
        parts = self._found({p.item_id: _key_of(p) for p in self.parts if p.experiment_id in there})
        return there, parts

    def _found(self, wanted: dict[str, dict[str, Any]]) -> set[str]:
        """Ids whose items are there, past the product."""
        places, items = list(wanted.values()), []
        for first in range(0, len(places), 100):
            request = {"Keys": places[first : first + 100], "ConsistentRead": True}
            answer = self.store.direct.batch_get_item(RequestItems={self.store.table: request})
            assert not answer.get("UnprocessedKeys")
            items += answer["Responses"][self.store.table]
        keys = [{name: item[name] for name in ("PK", "SK")} for item in items]
        return {item_id for item_id, key in wanted.items() if key in keys}


def _key_of(entity: Entity) -> dict[str, Any]:
    prefix = {"experiment": "E#META", "run": "R#", "logged_model": "LM#"}[entity.kind]
    sort = prefix if entity.kind == "experiment" else prefix + entity.item_id
    return {"PK": {"S": f"EXP#{entity.experiment_id}"}, "SK": {"S": sort}}


def deliver(_queue: str, messages: list[Any]) -> None:
    """The queue of the remover: at once, and twice."""
    records = [{"messageId": str(n), "body": message.body} for n, message in enumerate(messages)]
    for _ in range(2):
        assert remover.handler({"Records": records}, None) == {"batchItemFailures": []}


BUCKET = "our-bucket"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    monkeypatch.setenv("ARTIFACT_BUCKET", BUCKET)
    port.store.cache_clear()
    made = port.store()
    assert isinstance(made, Folder)
    yield made
    port.store.cache_clear()
