"""Random writes to the model registry through the API, and what the system tables should say."""

from __future__ import annotations

import random
from typing import Any

from mlcore.db import keys
from mlcore.entities.workspaces import Workspace
from mlcore.repos.registry import registered_models
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from tests.contract.conftest import Store
from tests.contract.registry_calls import new_model, new_version

HOME, AWAY = "default", "team"
NAMES = ("first", "a, b c", "third #ünï", "fourth")
TEXTS = ("plain", "ünïcode 😀", "a,b\n'quoted' \"too\"", "nul \x00 inside", "9" * 3000)
STAGES = ("Staging", "Production", "Archived", "None")

Model = dict[str, Any]


class RegistryWorld:
    """Does random things with models and remembers what they mean."""

    def __init__(self, store: Store, seed: int) -> None:
        self.api, self.rng = store.api, random.Random(seed)
        if AWAY not in workspaces.names():  # another world may have made it
            workspaces.create(Workspace(AWAY, None))
        self.models: list[Model] = []

    def step(self) -> None:
        rng = self.rng
        acts = [self.create_version] * 4 + [self.tag, self.untag, self.alias, self.unalias]
        acts += [self.tag_version, self.tag_version, self.untag_version, self.transition]
        acts += [self.describe, self.describe_version]
        acts += [self.rename] if rng.random() < 0.5 else []
        acts += [self.move] if rng.random() < 0.3 else []
        acts += [self.delete_version] if rng.random() < 0.6 else []
        acts += [self.delete] if rng.random() < 0.3 else []
        if len(self.models) < 3 or rng.random() < 0.05:
            acts = [self.create]
        rng.choice(acts)()

    def _reachable(self) -> list[Model]:
        return [model for model in self.models if model["workspace"] == HOME]

    def _model(self) -> Model | None:
        models = self._reachable()
        return self.rng.choice(models) if models else None

    def _version(self) -> tuple[Model, str] | None:
        versions = [(model, number) for model in self._reachable() for number in model["versions"]]
        return self.rng.choice(versions) if versions else None

    def _text(self) -> str:
        return self.rng.choice(TEXTS)

    def _free(self) -> str | None:
        """A name that no model has in either workspace, perhaps that of a former model."""
        taken = {model["name"] for model in self.models}
        names = [name for name in NAMES if name not in taken]
        return self.rng.choice(names) if names else None

    def create(self) -> None:
        name = self._free()
        if name is None:
            return
        tags = {"mlflow.prompt.is_prompt": "true"} if self.rng.random() < 0.2 else {"t": "x"}
        listed = [{"key": key, "value": value} for key, value in tags.items()]
        new_model(self.api, name, tags=listed, description=self._text())
        stored = registered_models.get(HOME, name)
        self.models.append(
            {
                "id": stored.incarnation,
                "name": name,
                "workspace": HOME,
                "description": stored.model.description,
                "tags": tags,
                "aliases": {},
                "versions": {},
            }
        )

    def create_version(self) -> None:
        if (model := self._model()) is not None:
            run = self.rng.choice(("", "some-run"))
            number = new_version(self.api, model["name"], run_id=run)
            model["versions"][str(number)] = {
                "stage": "None",
                "run": run or None,
                "description": None,
                "tags": {},
            }

    def tag(self) -> None:
        if (model := self._model()) is not None:
            key, value = f"t{self.rng.randrange(3)}", self._text()
            self.api.post("registered-models/set-tag", name=model["name"], key=key, value=value)
            model["tags"][key] = value

    def untag(self) -> None:
        if (model := self._model()) is not None:
            keys_left = [key for key in model["tags"] if not key.startswith("mlflow.")]
            if keys_left:
                key = self.rng.choice(keys_left)
                path, body = "registered-models/delete-tag", {"name": model["name"], "key": key}
                assert self.api.ask("DELETE", path, **body).status == 200
                del model["tags"][key]

    def alias(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            alias = f"a{self.rng.randrange(3)}"
            body = {"name": model["name"], "alias": alias, "version": number}
            self.api.post("registered-models/alias", **body)
            model["aliases"][alias] = int(number)

    def unalias(self) -> None:
        model = self._model()
        if model is not None and model["aliases"]:
            alias = self.rng.choice(sorted(model["aliases"]))
            body = {"name": model["name"], "alias": alias}
            assert self.api.ask("DELETE", "registered-models/alias", **body).status == 200
            del model["aliases"][alias]

    def describe(self) -> None:
        if (model := self._model()) is not None:
            text = self._text()
            body = {"name": model["name"], "description": text}
            assert self.api.ask("PATCH", "registered-models/update", **body).status == 200
            model["description"] = text

    def describe_version(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            text = self._text()
            body = {"name": model["name"], "version": number, "description": text}
            assert self.api.ask("PATCH", "model-versions/update", **body).status == 200
            model["versions"][number]["description"] = text

    def tag_version(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            key, value = f"t{self.rng.randrange(3)}", self._text()
            body = {"name": model["name"], "version": number, "key": key, "value": value}
            self.api.post("model-versions/set-tag", **body)
            model["versions"][number]["tags"][key] = value

    def untag_version(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            tags = model["versions"][number]["tags"]
            if tags:
                key = self.rng.choice(sorted(tags))
                body = {"name": model["name"], "version": number, "key": key}
                assert self.api.ask("DELETE", "model-versions/delete-tag", **body).status == 200
                del tags[key]

    def transition(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            stage = self.rng.choice(STAGES)
            archives = stage in ("Staging", "Production") and self.rng.random() < 0.5
            body = {"name": model["name"], "version": number, "stage": stage}
            self.api.post(
                "model-versions/transition-stage", **body, archive_existing_versions=archives
            )
            for other in model["versions"].values():
                if archives and other["stage"] == stage:
                    other["stage"] = "Archived"
            model["versions"][number]["stage"] = stage

    def rename(self) -> None:
        model, name = self._model(), self._free()
        if model is not None and name is not None:
            self.api.post("registered-models/rename", name=model["name"], new_name=name)
            model["name"] = name

    def move(self) -> None:
        """To another workspace, where the API does not reach it, or back."""
        if not self.models:
            return
        model = self.rng.choice(self.models)
        key = keys.registered_model(model["workspace"], model["name"])
        model["workspace"] = AWAY if model["workspace"] == HOME else HOME
        workspace_moves.registered_model(key, model["workspace"])

    def delete_version(self) -> None:
        if (version := self._version()) is not None:
            model, number = version
            body = {"name": model["name"], "version": number}
            assert self.api.ask("DELETE", "model-versions/delete", **body).status == 200
            del model["versions"][number]
            model["aliases"] = {
                alias: named for alias, named in model["aliases"].items() if named != int(number)
            }

    def delete(self) -> None:
        if (model := self._model()) is not None:
            answer = self.api.ask("DELETE", "registered-models/delete", name=model["name"])
            assert answer.status == 200
            self.models.remove(model)

    # ------------------------------------------------------------ what the tables should say

    def model_rows(self) -> dict[str, dict[str, Any]]:
        """What the rows of ``registered_models`` should say, by id."""
        return {
            model["id"]: {
                "workspace_id": model["workspace"],
                "name": model["name"],
                "is_prompt": "mlflow.prompt.is_prompt" in model["tags"],
                "description": model["description"] or None,
                "aliases": model["aliases"],
                "tags": model["tags"],
            }
            for model in self.models
        }

    def version_rows(self) -> dict[tuple[str, int], dict[str, Any]]:
        """What the rows of ``model_versions`` should say, by model and number."""
        return {
            (model["id"], int(number)): {
                "workspace_id": model["workspace"],
                "name": model["name"],
                "is_prompt": "mlflow.prompt.is_prompt" in model["tags"],
                "current_stage": version["stage"],
                "run_id": version["run"],
                "description": version["description"],
                "tags": version["tags"],
            }
            for model in self.models
            for number, version in model["versions"].items()
        }
