"""Request messages for label schemas. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Annotated, Final

from mlcore.wire import Int32, Message, enum, intlike, required, string, within

MAX_RESULTS: Final = 50_000
PAGE_SIZE: Final = within(1, MAX_RESULTS, f"max_results must be between 1 and {MAX_RESULTS}.")

SchemaType = Annotated[str | None, enum(LABEL_SCHEMA_TYPE_UNSPECIFIED=0, FEEDBACK=1, EXPECTATION=2)]


class InputPassFail(Message):
    positive_label: str
    negative_label: str


class InputCategorical(Message):
    options: list[str]
    multi_select: bool


class InputNumeric(Message):
    min_value: float
    max_value: float


class InputText(Message):
    max_length: int


class LabelSchemaInput(Message):
    pass_fail: InputPassFail | None
    categorical: InputCategorical | None
    numeric: InputNumeric | None
    text: InputText | None


class CreateLabelSchema(Message):
    experiment_id: str
    name: str
    type: SchemaType
    input: LabelSchemaInput | None
    instruction: str
    enable_comment: bool
    checks = {"experiment_id": (required, string), "name": (required, string)}


class GetLabelSchema(Message):
    schema_id: str
    checks = {"schema_id": (required, string)}


class GetLabelSchemaByName(Message):
    experiment_id: str
    name: str
    checks = {"experiment_id": (required, string), "name": (required, string)}


class ListLabelSchemas(Message):
    experiment_id: str
    max_results: Int32
    page_token: str
    checks = {"experiment_id": (required, string), "max_results": (intlike, PAGE_SIZE)}


class UpdateLabelSchema(Message):
    schema_id: str
    name: str
    instruction: str
    enable_comment: bool
    input: LabelSchemaInput | None
    checks = {"schema_id": (required, string)}


class DeleteLabelSchema(Message):
    schema_id: str
    checks = {"schema_id": (required, string)}
