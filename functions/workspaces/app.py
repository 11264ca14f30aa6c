"""The routes of workspaces, which separate experiments, models and webhooks from each other; of the
deployment's settings; of the readers of the system tables; and of the trash of an experiment."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post, put
from workspaces import messages as m
from workspaces import removal, service, settings, system_table_readers, trash

_WORKSPACE = "/mlflow/workspaces/{workspace_name}"
_CONFIG = "/mlflow-serverless/config"
_READERS = "/mlflow-serverless/system-tables/readers"
_TRASH = "/mlflow-serverless/trash"

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
        deviation="A name in use is refused with 400, and so is one that ends with a line break.",
    ),
    get(
        _WORKSPACE,
        m.GetWorkspace,
        service.get_workspace,
        "workspaces.view",
        version="3.0",
        since="3.10",
        cost=1,
        deviation="Whoever may list a workspace may get it.",
    ),
    patch(
        _WORKSPACE,
        m.UpdateWorkspace,
        service.update_workspace,
        "requests.administrators",
        version="3.0",
        since="3.10",
        cost=1,
    ),
    delete(
        _WORKSPACE,
        m.DeleteWorkspace,
        removal.delete_workspace,
        "requests.administrators",
        version="3.0",
        status=204,
        since="3.10",
        cost=13,
        deviation="CASCADE deletes files, too; 503 asks the client to repeat the request.",
    ),
    get(
        _READERS,
        m.ListReaders,
        system_table_readers.list_readers,
        "requests.administrators",
        version="3.0",
        since="",
        cost=3,
    ),
    put(
        _READERS,
        m.PutReader,
        system_table_readers.put_reader,
        "requests.administrators",
        version="3.0",
        since="",
        cost=2,
    ),
    delete(
        _READERS,
        m.DeleteReader,
        system_table_readers.delete_reader,
        "requests.administrators",
        version="3.0",
        since="",
        cost=2,
    ),
    get(
        _CONFIG,
        m.ListConfig,
        settings.list_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    get(
        f"{_CONFIG}/{{key}}",
        m.GetConfig,
        settings.get_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    put(
        f"{_CONFIG}/{{key}}",
        m.PutConfig,
        settings.put_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    delete(
        f"{_CONFIG}/{{key}}",
        m.GetConfig,
        settings.delete_config,
        "requests.administrators",
        version="3.0",
        since="",
        cost=1,
    ),
    get(
        _TRASH,
        m.ListTrash,
        trash.list_trash,
        "experiments.delete",
        version="3.0",
        since="",
        cost=3,
    ),
    post(
        f"{_TRASH}/restore",
        m.RestoreTrash,
        trash.restore_trash,
        "experiments.delete",
        version="3.0",
        since="",
        cost=4,
    ),
    post(
        f"{_TRASH}/purge",
        m.PurgeTrash,
        trash.purge_trash,
        "experiments.delete",
        version="3.0",
        since="",
        cost=15,
    ),
)

handler = lambda_handler(RPCS)
