"""The RPCs of workspaces, worlds of their own for experiments, models and webhooks; of the
deployment's settings, and of who may read the system tables."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post, put
from workspaces import config, readers, removal, service
from workspaces import messages as m

_ONE = "/mlflow/workspaces/{workspace_name}"
_CONFIG = "/mlflow-serverless/config"
_READERS = "/mlflow-serverless/system-tables/readers"

RPCS = (
    get(
        "/mlflow/workspaces",
        m.ListWorkspaces,
        service.list_workspaces,
        "requests.anybody",
        version="3.0",
        since="3.10",
        cost=2,
    ),
    post(
        "/mlflow/workspaces",
        m.CreateWorkspace,
        service.create_workspace,
        "requests.administrators",
        version="3.0",
        status=201,
        since="3.10",
        cost=2,
        deviation="A name that is taken is refused with 400, one with a line end as well.",
    ),
    get(
        _ONE,
        m.GetWorkspace,
        service.get_workspace,
        "workspaces.view",
        version="3.0",
        since="3.10",
        cost=1,
        deviation="Who may list a workspace may get it.",
    ),
    patch(
        _ONE,
        m.UpdateWorkspace,
        service.update_workspace,
        "requests.administrators",
        version="3.0",
        since="3.10",
        cost=1,
    ),
    delete(
        _ONE,
        m.DeleteWorkspace,
        removal.delete_workspace,
        "requests.administrators",
        version="3.0",
        status=204,
        since="3.10",
        cost=12,
        deviation="CASCADE deletes files, too; 503 asks for a repetition.",
    ),
    get(
        _READERS,
        m.ListReaders,
        readers.list_readers,
        "requests.administrators",
        version="3.0",
        since="",
        cost=3,
    ),
    put(
        _READERS,
        m.PutReader,
        readers.put_reader,
        "requests.administrators",
        version="3.0",
        since="",
        cost=2,
    ),
    delete(
        _READERS,
        m.DeleteReader,
        readers.delete_reader,
        "requests.administrators",
        version="3.0",
        since="",
        cost=2,
    ),
    get(
        _CONFIG,
        m.ListConfig,
        config.list_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    get(
        f"{_CONFIG}/{{key}}",
        m.GetConfig,
        config.get_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    put(
        f"{_CONFIG}/{{key}}",
        m.PutConfig,
        config.put_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    delete(
        f"{_CONFIG}/{{key}}",
        m.GetConfig,
        config.delete_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
)

handler = lambda_handler(RPCS)
