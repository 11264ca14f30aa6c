"""What an import writes besides runs and models: workspaces, webhooks, roles, users, files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import artifacts
from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.errors import InvalidParameterValue
from mlcore.repos import webhooks as webhook_items
from mlcore.repos.users import grants, users
from operate.transfer import accounts, files, webhooks, workspaces
from operate.transfer.mlflow_client import Server, SourceFailed
from operate.transfer.transfer_item import TransferItem, differences
from tests.contract.conftest import Store

ROLE = {
    "name": "editors",
    "workspace": "team",
    "description": "those who edit",
    "permissions": [
        {"resource_type": "experiment", "resource_pattern": "*", "permission": "EDIT"},
        {"resource_type": "experiment", "resource_pattern": "1", "permission": "MANAGE"},
    ],
}
OWN = {
    "name": "__user_7__",
    "workspace": "default",
    "description": None,
    "permissions": [
        {"resource_type": "experiment", "resource_pattern": "1", "permission": "EDIT"},
        {"resource_type": "registered_model", "resource_pattern": "m", "permission": "MANAGE"},
    ],
}
ANSWERS: dict[str, Any] = {
    "server-info": {"workspaces_enabled": True},
    "workspaces": {
        "workspaces": [
            {"name": "default", "description": "d"},
            {"name": "team", "trace_archival_config": {"retention": "30d"}},
        ]
    },
    "webhooks": {
        "webhooks": [
            {
                "webhook_id": "w-1",
                "name": "hook",
                "url": "https://example.com",
                "events": [
                    {"entity": "MODEL_VERSION_TAG", "action": "SET"},
                    {"entity": "FROM_A_LATER_SERVER", "action": "MADE"},
                ],
                "status": "ACTIVE",
                "creation_timestamp": 1,
                "last_updated_timestamp": 2,
            }
        ]
    },
    "list": {
        "users": [
            {"username": "ann", "is_admin": False, "roles": [OWN, ROLE]},
            {"username": "bob", "is_admin": True, "roles": []},
        ],
        "roles": [OWN, ROLE],
    },
}


class Told(Server):
    """Answers what it has been given, and 403 to everything else."""

    def get(self, path: str, /, **parameters: Any) -> Any:
        name = path.rpartition("/")[2]
        if name == "artifacts":
            return {"files": [{"path": "a b.txt", "file_size": 5}]}
        if name not in self.answers:
            raise SourceFailed(403, "Permission denied")
        return self.answers[name]

    def stream(self, path: str) -> Iterator[bytes]:
        yield b"hello"

    answers = ANSWERS


def as_it_is(_kind: str, source_id: str) -> str:
    return source_id


def mapped(kind: str, source_id: str) -> str:
    return f"mapped-{source_id}" if kind == EXPERIMENT else source_id


def bring(items: list[TransferItem]) -> None:
    """Twice, as if the first one's end had been lost."""
    for item in items:
        assert item.have() is None
        item.write(item.want(), None)
        assert differences(item, item.want(), item.have()) == []
        item.write(item.want(), item.have())
        assert differences(item, item.want(), item.have()) == []


def test_what_belongs_to_a_deployment(store: Store) -> None:
    server = Told("http://old")
    bring(list(workspaces.items(workspaces.listed(server))))
    bring(list(webhooks.items(server.within("team"))))
    (webhook,) = webhook_items.of_workspace("team")
    assert (webhook.status, webhook.sealed_secret) == ("DISABLED", "")
    assert list(map(str, webhook.events)) == ["model_version_tag.set"]
    old_accounts = accounts.read(server, mapped)
    bring([*old_accounts.roles, *old_accounts.users])
    ann = users.get("ann")
    assert ann.password_hash == ""
    grant = grants.find(ann, "default", "experiment", "mapped-1")
    assert grant == Grant("experiment", "mapped-1", "EDIT")


def test_what_the_target_has_besides_stays(store: Store) -> None:
    made = users.create("ann", "her hash", is_admin=True)
    users.own_role_id(made, "default")
    grants.put(made, "default", Grant("experiment", "her own", "MANAGE"))
    (user, _) = accounts.read(Told("http://old"), as_it_is).users
    user.write(user.want(), user.have())
    ann = users.get("ann")
    assert (ann.password_hash, ann.is_admin) == ("her hash", True)
    assert grants.find(ann, "default", "experiment", "her own") is not None


def test_an_account_that_may_not_ask() -> None:
    class Refusing(Told):
        answers: dict[str, Any] = {}

    server = Refusing("http://old")
    assert accounts.read(server, as_it_is) == ([], [])
    assert list(webhooks.items(server)) == []


def test_files_of_a_workspace(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Folder(str(tmp_path))
    monkeypatch.setattr(artifacts, "store", lambda: kept)
    item = files.item(Told("http://old").within("team"), "workspaces/team/2/run")
    item.write(item.want(), item.have())
    assert differences(item, item.want(), item.have()) == []
    (file,) = tmp_path.rglob("a b.txt")
    assert file.as_posix().endswith("files/workspaces/team/2/run/a b.txt")
    assert file.read_bytes() == b"hello"


def test_a_file_that_one_side_refuses_does_not_keep_the_others(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux allows names that no artifact may have; MLflow's server lists such files, but serves
    not all of them."""
    refused = ["a\\b", "c#d", "e" * 256, "not served"]

    class Listing(Told):
        def get(self, path: str, /, **parameters: Any) -> Any:
            names = ["first", *refused, "last"]
            return {"files": [{"path": name, "is_dir": False, "file_size": 5} for name in names]}

        def stream(self, path: str) -> Iterator[bytes]:
            if path.endswith("not served"):
                raise SourceFailed(400, "Invalid path")
            yield b"hello"

    kept = Folder(str(tmp_path))
    monkeypatch.setattr(artifacts, "store", lambda: kept)
    item = files.item(Listing("http://old"), "2/run")
    with pytest.raises(InvalidParameterValue) as failure:
        item.write(item.want(), item.have())
    assert all(f"{name}: " in failure.value.message for name in refused)
    assert sorted(path.name for path in tmp_path.glob("**/2/run/*")) == ["first", "last"]
    missing = {difference.field for difference in differences(item, item.want(), item.have())}
    assert missing == set(refused)
