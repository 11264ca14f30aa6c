"""Requests to the model registry, for both servers."""

from __future__ import annotations

from typing import Any

from tests.differential.rest import Call, get, post

MODELS, VERSIONS = "registered-models", "model-versions"


def model(name: str, **more: Any) -> Call:
    return post(f"{MODELS}/create", {"name": name, **more})


def version(name: str, source: Any = "s3://bucket/model", **more: Any) -> Call:
    return post(f"{VERSIONS}/create", {"name": name, "source": source, **more})


def get_model(name: str) -> Call:
    return get(f"{MODELS}/get", name=name)


def move(name: str, number: str, stage: str, *, archive: bool = False) -> Call:
    body = {"name": name, "version": number, "stage": stage}
    return post(f"{VERSIONS}/transition-stage", {**body, "archive_existing_versions": archive})


def latest(name: str, *stages: str) -> Call:
    return post(f"{MODELS}/get-latest-versions", {"name": name, "stages": list(stages)})
