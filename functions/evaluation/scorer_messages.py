"""Request messages for scorers. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Int32, Message, array, intlike, item_type_string, required, string


class RegisterScorer(Message):
    experiment_id: str
    name: str
    serialized_scorer: str
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "serialized_scorer": (required, string),
    }


class ListScorers(Message):
    experiment_id: str
    experiment_ids: list[str]
    checks = {"experiment_id": (string,), "experiment_ids": (array, item_type_string)}


class ListScorerVersions(Message):
    experiment_id: str
    name: str
    checks = {"experiment_id": (required, string), "name": (required, string)}


class GetScorer(Message):
    experiment_id: str
    name: str
    version: Int32
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "version": (intlike,),
    }


class DeleteScorer(Message):
    experiment_id: str
    name: str
    version: Int32
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "version": (intlike,),
    }


class GetOnlineScoringConfigs(Message):
    scorer_ids: list[str]
    checks = {"scorer_ids": (required, array, item_type_string)}


class SetOnlineScoringConfig(Message):
    experiment_id: str
    name: str
    sample_rate: Any
    filter_string: str
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "sample_rate": (required,),
    }
