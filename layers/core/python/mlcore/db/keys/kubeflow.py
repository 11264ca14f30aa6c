"""Keys of entities that exist in Kubeflow's model registry only, and of references to MLflow's.

Kubeflow's ids are numbers. They are unique among artifacts, among executions, and among *contexts*:
Kubeflow's word for models, versions, experiments, runs, environments and services. Each number has
a partition. It holds the names that the entity's children use, and either the entity itself or, for
an entity that MLflow also has, a reference to its item.
"""

from __future__ import annotations

from mlcore.db.keys.pattern import IndexKey, Key, Pattern

_CONTEXT = "CONTEXT#<context_id>"

CONTEXT_REF = Pattern(
    "context_ref",
    _CONTEXT,
    "CONTEXT#REF",
    "the item of the model, version, run … with a Kubeflow number",
)
CONTEXT_CHILD = Pattern(
    "context_child",
    _CONTEXT,
    "CHILD#<child_kind>#<child_name>",
    "a version, run, service, artifact … of a parent, by its name there",
)
SERVING_ENVIRONMENT = Pattern(
    "serving_environment", _CONTEXT, "SE#META", "a serving environment of Kubeflow's"
)
INFERENCE_SERVICE = Pattern(
    "inference_service", _CONTEXT, "IS#META", "an inference service of Kubeflow's"
)
ARTIFACT = Pattern(
    "artifact", "ARTIFACT#<artifact_id>", "A#META", "an artifact of Kubeflow's, of any type"
)
SERVE_MODEL = Pattern(
    "serve_model", "EXECUTION#<execution_id>", "SM#META", "a version served by a service"
)
CONTEXT_NAME = Pattern(
    "context_name",
    "CONTEXTNAME#<workspace>#<child_kind>#<child_name>",
    "CONTEXTNAME#LOCK",
    "makes the name of a serving environment unique",
)
EXTERNAL_ID = Pattern(
    "external_id",
    "EXTERNALID#<workspace>#<child_kind>#<external_id>",
    "EXTERNALID#LOCK",
    "makes an external id unique among entities of a kind",
)
GSI2_NUMBER = Pattern(
    "gsi2_number",
    "NUMBER#<workspace>#<child_kind>",
    "<number>",
    "entities with a Kubeflow number, by kind and number",
    index="GSI2",
)
GSI2_UNSEEN = Pattern(
    "gsi2_unseen",
    "UNSEEN#<workspace>#<child_kind>",
    "<suffix>",
    "entities that MLflow created and that have no Kubeflow number yet",
    index="GSI2",
)
GSI1_CREATED = Pattern(
    "gsi1_created",
    "CREATED#<workspace>#<child_kind>",
    "<time>#<number>",
    "entities with a Kubeflow number, by kind and time of creation",
    index="GSI1",
)
GSI4_UPDATED = Pattern(
    "gsi4_updated",
    "UPDATED#<workspace>#<child_kind>",
    "<time>#<number>",
    "entities with a Kubeflow number, by kind and time of their last update",
    index="GSI4",
)

KUBEFLOW_PATTERNS = (
    CONTEXT_REF,
    CONTEXT_CHILD,
    SERVING_ENVIRONMENT,
    INFERENCE_SERVICE,
    ARTIFACT,
    SERVE_MODEL,
    CONTEXT_NAME,
    EXTERNAL_ID,
)
KUBEFLOW_INDEX_PATTERNS = (GSI1_CREATED, GSI2_NUMBER, GSI2_UNSEEN, GSI4_UPDATED)


def context(number: int) -> str:
    """Returns the partition key of a Kubeflow context (a model, version, experiment, run,
    environment or service) with this number."""
    return CONTEXT_REF.pk.build(str(number))


def context_ref(number: int) -> Key:
    return Key(context(number), CONTEXT_REF.sk.text)


def context_child(parent: int, kind: str, name: str) -> Key:
    return Key(context(parent), CONTEXT_CHILD.sk.build(kind, name))


def context_child_prefix(kind: str | None = None) -> str:
    return CONTEXT_CHILD.sk.prefix() if kind is None else CONTEXT_CHILD.sk.prefix(kind)


def serving_environment(number: int) -> Key:
    return Key(context(number), SERVING_ENVIRONMENT.sk.text)


def inference_service(number: int) -> Key:
    return Key(context(number), INFERENCE_SERVICE.sk.text)


def artifact(number: int) -> Key:
    return Key(ARTIFACT.pk.build(str(number)), ARTIFACT.sk.text)


def serve_model(number: int) -> Key:
    return Key(SERVE_MODEL.pk.build(str(number)), SERVE_MODEL.sk.text)


def context_name(workspace: str, kind: str, name: str) -> Key:
    return Key(CONTEXT_NAME.pk.build(workspace, kind, name), CONTEXT_NAME.sk.text)


def external_id(workspace: str, kind: str, external: str) -> Key:
    return Key(EXTERNAL_ID.pk.build(workspace, kind, external), EXTERNAL_ID.sk.text)


def gsi2_number(workspace: str, kind: str, number: int) -> IndexKey:
    return IndexKey(GSI2_NUMBER.pk.build(workspace, kind), GSI2_NUMBER.sk.build(number))


def gsi2_unseen(workspace: str, kind: str, suffix: str) -> IndexKey:
    """Returns the GSI2 key of an entity that was made through MLflow and to which Kubeflow's API
    has not given a number yet. ``suffix`` is a ULID of the entity, so the oldest entities come
    first."""
    return IndexKey(GSI2_UNSEEN.pk.build(workspace, kind), GSI2_UNSEEN.sk.build(suffix))


def gsi1_created(workspace: str, kind: str, time: int, number: int) -> IndexKey:
    return IndexKey(GSI1_CREATED.pk.build(workspace, kind), GSI1_CREATED.sk.build(time, number))


def gsi4_updated(workspace: str, kind: str, time: int, number: int) -> IndexKey:
    return IndexKey(GSI4_UPDATED.pk.build(workspace, kind), gsi4_updated_sk(time, number))


def gsi4_updated_sk(time: int, number: int) -> str:
    return GSI4_UPDATED.sk.build(time, number)


def time_and_number(sk: str) -> tuple[int, int]:
    """Returns (time in milliseconds, numeric id) from a sort key of an index that orders Kubeflow's
    entities by creation or update time."""
    fields = GSI4_UPDATED.sk.parse(sk) or {}
    return fields["time"], fields["number"]
