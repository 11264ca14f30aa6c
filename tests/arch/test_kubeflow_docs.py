"""docs/kubeflow.md says what the code has: entities, their fields and keys, types, relations."""

from __future__ import annotations

from pathlib import Path

from mlcore.kubeflow import custom_properties, kinds
from mlcore.kubeflow.kinds import KINDS, EntityKind
from mlcore.models import experiments, kubeflow, registry, runs
from mlcore.models.base import Item

DOC = (Path(__file__).parents[2] / "docs" / "kubeflow.md").read_text(encoding="utf-8")

MODELS: dict[str, tuple[str, type[Item]]] = {
    "RegisteredModel": ("contexts", registry.RegisteredModel),
    "ModelVersion": ("contexts", registry.ModelVersion),
    "ServingEnvironment": ("contexts", kubeflow.ServingEnvironment),
    "InferenceService": ("contexts", kubeflow.InferenceService),
    "Experiment": ("contexts", experiments.Experiment),
    "ExperimentRun": ("contexts", runs.Run),
    "ServeModel": ("executions", kubeflow.ServeModel),
}
SEEDS = {
    *("RegisteredModel", "ModelVersion", "ModelArtifact", "DocArtifact", "ServingEnvironment"),
    *("InferenceService", "ServeModel", "Experiment", "ExperimentRun"),
}
"""The entities that the registry's own documentation lists."""


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first row is this."""
    lines = DOC.splitlines()
    at = lines.index(heading) + 2
    results = []
    while lines[at].startswith("|"):
        results.append([cell.strip() for cell in lines[at].strip("|").split("|")])
        at += 1
    return results


def expected(kind: EntityKind) -> list[str]:
    numbered, model = MODELS.get(kind.title, ("artifacts", kubeflow.Artifact))
    required = ["name"] if kind.named else []
    required += [field.name for field in kind.fields if field.required]
    module = model.__module__.rpartition(".")[2]
    return [
        kind.title,
        numbered,
        f"`{module}.{model.__name__}`",
        f"`{model.pattern.pk.text}`",
        f"`{model.pattern.sk.text}`",
        " ".join(f"`{name}`" for name in required) or "–",
        " ".join(f"`{field.name}`" for field in kind.fields) or "–",
    ]


def test_entities() -> None:
    table = rows("| entity | numbered with | item | PK | SK | required | own fields |")
    assert table == [expected(kind) for kind in KINDS.values()]
    assert {row[0] for row in table} >= SEEDS


def test_types_of_properties() -> None:
    table = rows("| custom property | where its value is | as MLflow's tag |")
    assert {row[0].strip("`"): row[1].strip("`") for row in table} == custom_properties.MEMBER


def test_relations() -> None:
    parents = {
        kinds.MODEL_VERSION: kinds.REGISTERED_MODEL,
        kinds.EXPERIMENT_RUN: kinds.EXPERIMENT,
        kinds.INFERENCE_SERVICE: kinds.SERVING_ENVIRONMENT,
        kinds.SERVE_MODEL: kinds.INFERENCE_SERVICE,
    }
    table = {row[1]: row for row in rows("| parent | children | how |")}
    for child, parent in parents.items():
        assert table[child.title] == [parent.title, child.title, f"`CHILD#{child.name}#<name>`"]
    assert kubeflow.ContextChild.pattern.sk.text == "CHILD#<child_kind>#<child_name>"
    artifacts = [row for row in rows("| parent | children | how |") if "artifacts" in row[1]]
    assert {row[0] for row in artifacts} == {"ModelVersion", "ExperimentRun"}
