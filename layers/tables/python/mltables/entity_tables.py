"""Defines the system tables of entities outside of experiments: registered models and their
versions. ``mlcore/system_tables/entity_sources`` says where their rows come from."""

from __future__ import annotations

from typing import Final

from mltables.table_columns import (
    Table,
    boolean_column,
    integer_column,
    integers_column,
    text_column,
    texts_column,
    time_column,
)

MODELS: Final = Table(
    "registered_models",
    (
        text_column("account_id"),
        text_column("workspace_id"),
        text_column("registered_model_id"),
        text_column("name"),
        boolean_column("is_prompt"),
        text_column("description", nullable=True),
        time_column("create_time"),
        time_column("last_update_time"),
        time_column("update_time"),
        integers_column("latest_versions"),
        integers_column("aliases"),
        texts_column("tags"),
        texts_column("custom_properties"),
        integer_column("kubeflow_id", nullable=True),
        text_column("external_id", nullable=True),
    ),
    "create_month",
    "create_time,registered_model_id,workspace_id",
    "registered_model_id",
    "registered_model_id",
    "create_time",
)
VERSIONS: Final = Table(
    "model_versions",
    (
        text_column("account_id"),
        text_column("workspace_id"),
        text_column("registered_model_id"),
        text_column("name"),
        boolean_column("is_prompt"),
        integer_column("version"),
        text_column("current_stage"),
        text_column("status"),
        text_column("status_message", nullable=True),
        text_column("user_id", nullable=True),
        text_column("description", nullable=True),
        text_column("source"),
        text_column("storage_location", nullable=True),
        text_column("run_id", nullable=True),
        text_column("run_link", nullable=True),
        text_column("model_id", nullable=True),
        time_column("create_time"),
        time_column("last_update_time"),
        time_column("update_time"),
        texts_column("tags"),
        texts_column("custom_properties"),
        integer_column("kubeflow_id", nullable=True),
        text_column("external_id", nullable=True),
    ),
    "create_month",
    "create_time,registered_model_id,run_id,workspace_id",
    "registered_model_id, version",
    "registered_model_id, version",
    "create_time",
)
OF_ENTITIES: Final = (MODELS, VERSIONS)
"""The tables of entities outside of experiments."""
