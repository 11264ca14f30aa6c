"""Request messages for jobs that optimize prompts. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Annotated

from mlcore.wire import Message, array, enum, required, string

OptimizerType = Annotated[
    str | None,
    enum(
        OPTIMIZER_TYPE_UNSPECIFIED=0,
        OPTIMIZER_TYPE_GEPA=1,
        OPTIMIZER_TYPE_METAPROMPT=2,
    ),
]


class PromptOptimizationJobConfig(Message):
    optimizer_type: OptimizerType
    dataset_id: str
    scorers: list[str]
    optimizer_config_json: str


class PromptOptimizationJobTag(Message):
    key: str
    value: str


class CreatePromptOptimizationJob(Message):
    experiment_id: str
    source_prompt_uri: str
    config: PromptOptimizationJobConfig | None
    tags: list[PromptOptimizationJobTag]
    checks = {
        "experiment_id": (string,),
        "source_prompt_uri": (string, required),
        "config": (required,),
        "tags": (array,),
    }


class GetPromptOptimizationJob(Message):
    job_id: str


class SearchPromptOptimizationJobs(Message):
    experiment_id: str
    checks = {"experiment_id": (required, string)}


class CancelPromptOptimizationJob(Message):
    job_id: str


class DeletePromptOptimizationJob(Message):
    job_id: str
