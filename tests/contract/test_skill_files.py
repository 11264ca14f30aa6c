"""Uploaded files of skills: what is stored, who may reach them, and when they go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from file_remover import app as remover
from indexer import app as indexer
from mlcore import artifacts, file_removal_queue
from mlcore.auth.permissions import SKILL, Grant
from mlcore.errors import TemporarilyUnavailable
from mlcore.repos.users import grants, users
from skills import registration, uploaded_files
from tests.contract import skill_archives as archives
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.skill_api import FILES, ask
from tests.contract.skill_requests import Call, get, send, uploaded, version
from tests.contract.streams import Stream, following

GOOD = archives.archive(archives.FILES)
ARTIFACTS = "/api/2.0/mlflow-artifacts"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the files are; the remover takes messages at once."""
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    monkeypatch.setenv("FILE_REMOVAL_QUEUE_URL", "queue")

    def send_now(_queue: str, removals: Any) -> None:
        for removal in removals:
            remover.remove(removal)

    monkeypatch.setattr(file_removal_queue, "send", send_now)
    artifacts.store.cache_clear()
    yield tmp_path / "files"
    artifacts.store.cache_clear()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _path(reply: Any) -> str:
    assert reply.status == 200, reply.body
    source: str = reply.body["source"]
    return source.removeprefix("mlflow-artifacts:/")


def _fresh(stream: Stream) -> list[Any]:
    """New records, with times as Lambda passes them."""
    records = stream.fresh()
    for record in records:
        time = record["dynamodb"]["ApproximateCreationDateTime"]
        seconds = time if isinstance(time, int | float) else time.timestamp()
        record["dynamodb"]["ApproximateCreationDateTime"] = seconds
    return records


def test_files_come_back_as_they_were_sent(store: Store, folder: Path) -> None:
    files = {**archives.FILES, "é/ü b.txt": bytes(range(256)), "empty": b""}
    path = _path(ask(uploaded("up", archives.archive(files))))
    assert _files(folder) == {f"{path}/{name}": data for name, data in files.items()}
    listed = ask(Call("GET", f"/artifacts?path={path}"), root=ARTIFACTS).body["files"]
    assert [file["path"] for file in listed] == ["SKILL.md", "empty", "scripts", "é"]
    reply = ask(Call("GET", f"/{path}/scripts/run.sh"), root=FILES)
    assert (reply.status, reply.body) == (200, "echo hi\n")


@pytest.mark.parametrize("name", archives.HOSTILE)
def test_a_refused_archive_leaves_nothing(store: Store, folder: Path, name: str) -> None:
    reply = ask(uploaded("hostile", archives.HOSTILE[name]()))
    assert (reply.status, reply.code) == (400, "INVALID_PARAMETER_VALUE")
    assert _files(folder) == {}
    assert ask(get("/hostile")).status == 404


def test_a_version_that_is_refused_after_its_upload_leaves_no_files(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlcore.limits.skills.MAX_VERSION", 1)
    kept = _path(ask(uploaded("full", GOOD)))
    assert ask(uploaded("full", GOOD)).status == 400
    assert {path.rpartition("/scripts")[0] or kept for path in _files(folder)} == {kept}


def test_a_name_that_s3_has_no_room_for_is_refused(store: Store, folder: Path) -> None:
    reply = ask(uploaded("long", archives.archive({"/".join(["n" * 200] * 5): b""})))
    assert (reply.status, reply.code) == (400, "INVALID_PARAMETER_VALUE")
    assert _files(folder) == {}


@pytest.mark.parametrize("content_length", [30_000_000, 5_000_000])
def test_a_body_that_did_not_arrive_is_too_large(store: Store, content_length: int) -> None:
    """API Gateway and Lambda pass about 4.4 MB; the header says what was sent."""
    from skills import app  # noqa: PLC0415

    event = {
        "version": "2.0",
        "rawPath": "/api/3.0/mlflow/skills/big/versions",
        "rawQueryString": "",
        "headers": {
            "content-type": archives.MULTIPART,
            "content-length": str(content_length),
            "host": "localhost",
        },
        "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
        "isBase64Encoded": False,
        "body": "",
    }
    answer = app.handler(event, None)
    assert answer["statusCode"] == 413
    assert "BAD_REQUEST" in answer["body"]


def test_files_go_with_their_skill_and_not_before(store: Store, folder: Path) -> None:
    with following(store) as stream:
        paths = [_path(ask(uploaded("gone", GOOD, status="draft"))) for _ in range(2)]
        other = _path(ask(uploaded("other", GOOD)))
        ask(version("gone"))
        ask(send("DELETE", "/gone/versions/1"))
        indexer.index(_fresh(stream))
        assert {path.split("/")[2] for path in _files(folder)} == {
            path.split("/")[2] for path in (*paths, other)
        }
        reads = [Call("GET", f"/{kind}/{paths[0]}/SKILL.md") for kind in ("artifacts", "presigned")]
        assert ask(reads[0], root=ARTIFACTS).status == 200
        ask(send("DELETE", "/gone"))
        assert [ask(read, root=ARTIFACTS).status for read in reads] == [404, 404], "at once"
        records = _fresh(stream)
        assert indexer.index(records) is None
        assert indexer.index(records) is None  # delivered again
        assert {path.split("/")[2] for path in _files(folder)} == {other.split("/")[2]}
        again = _path(ask(uploaded("gone", GOOD)))
        indexer.index(_fresh(stream))
        indexer.index(records)
        assert f"{again}/SKILL.md" in _files(folder)


def test_nobody_writes_or_deletes_among_the_files(store: Store, folder: Path) -> None:
    path = _path(ask(uploaded("closed", GOOD)))
    before = _files(folder)
    folders = (path, f"{path}/SKILL.md", "skills", "skills/closed", "Skills/x", "%73kills/x")
    spelled = (*folders, f"./{path}/x", f"//{path}/x", "SKILLS/closed", "ſkills/x")
    for name in spelled:
        for call in (
            Call("PUT", f"/artifacts/{name}", b"x", "text/plain"),
            Call("DELETE", f"/artifacts/{name}"),
            *(
                send("POST", f"/mpu/{step}/{name}", {"path": "x", "num_parts": 1, "upload_id": "u"})
                for step in ("create", "abort")
            ),
        ):
            reply = ask(call, root=ARTIFACTS)
            assert reply.status in {400, 403}, (call, reply)
    reply = ask(Call("PUT", "/artifacts/skillsx/a", b"x", "text/plain"), root=ARTIFACTS)
    assert reply.status == 200
    assert {**_files(folder), **before} == {**before, "skillsx/a": b"x"}


def test_no_experiment_keeps_files_there(store: Store) -> None:
    for name in ("skills", "skills/closed/x", "Skills", "./skills"):
        location = f"mlflow-artifacts:/{name}"
        answer = store.api.ask("POST", "experiments/create", name=name, artifact_location=location)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")


def test_who_may_read_a_skill_may_read_its_files(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    names = {}
    for name in ("amy", "ben"):
        names[name] = users.create(name, "", is_admin=False)
    for skill in ("secret", "@acme/secret"):
        path = _path(ask(uploaded(skill, GOOD), user="amy"))
        reads = [
            Call("GET", f"/artifacts?path={path}"),
            Call("GET", f"/artifacts/{path}/SKILL.md"),
            Call("GET", f"/presigned/{path}/SKILL.md"),
            Call("GET", f"/artifacts?path=skills/{skill}"),
            Call("GET", f"/artifacts/{path.upper()}/SKILL.md"),
            Call("GET", f"/artifacts/./{path}/SKILL.md"),
            Call("GET", f"/artifacts/x%2f..%2f{path}/SKILL.md"),
            Call("GET", "/artifacts?path=skills"),
            Call("GET", "/artifacts?path=skills/@acme"),
            Call("GET", "/artifacts?path=skills/"),
        ]
        for call in reads:
            reply = ask(call, user="ben", root=ARTIFACTS)
            assert reply.status == 403, (call, reply)
        assert [ask(call, user="amy", root=ARTIFACTS).status for call in reads[:2]] == [200, 200]
        grants.create(names["ben"], "default", Grant(SKILL, skill, "READ"))
        assert [ask(call, user="ben", root=ARTIFACTS).status for call in reads[:2]] == [200, 200]
        reply = ask(Call("GET", "/artifacts?path=skills"), user="ben", root=ARTIFACTS)
        assert reply.status == 403
        assert ask(reads[7], user="root", admin=True, root=ARTIFACTS).status == 200


def test_files_of_a_killed_registration_are_nobodys(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who registers a skill under the name later, and so may read its files, gets none of those
    that another user sent before."""
    users.create("amy", "", is_admin=False)
    users.create("ben", "", is_admin=False)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    for name in ("x", "@acme/x"):
        before = set(_files(folder))
        with monkeypatch.context() as patch:
            patch.setattr(registration, "_create", killed)
            with pytest.raises(KeyboardInterrupt):
                ask(uploaded(name, GOOD), user="amy")
        left = min(set(_files(folder)) - before).removesuffix("/SKILL.md")
        own = _path(ask(uploaded(name, GOOD), user="ben"))
        for path, found in ((own, True), (left, False)):
            reads = [Call("GET", f"/{kind}/{path}/SKILL.md") for kind in ("artifacts", "presigned")]
            statuses = [ask(read, user="ben", root=ARTIFACTS).status for read in reads]
            assert statuses == [200 if found else 404] * 2
            listed = ask(Call("GET", f"/artifacts?path={path}"), user="ben", root=ARTIFACTS)
            assert ("files" in listed.body) is found
        listed = ask(Call("GET", f"/artifacts?path=skills/{name}"), user="ben", root=ARTIFACTS)
        assert [file["path"] for file in listed.body["files"]] == [own.rpartition("/")[2]]


def test_files_of_workspaces_are_apart(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team")
    path = _path(ask(uploaded("same", GOOD), workspace="team"))
    assert f"workspaces/team/{path}/SKILL.md" in _files(folder)
    read = Call("GET", f"/artifacts/{path}/SKILL.md")
    assert ask(read, workspace="team", root=ARTIFACTS).status == 200
    assert ask(read, root=ARTIFACTS).status == 404
    reply = ask(Call("DELETE", f"/artifacts/workspaces/team/{path}"), root=ARTIFACTS)
    assert reply.status in {400, 403}
    with following(store) as stream:
        assert ask(send("DELETE", "/same"), workspace="team").status == 200
        indexer.index(_fresh(stream))
    assert _files(folder) == {}


def test_an_upload_is_repeated_after_the_store_was_away(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client repeats a request that creates after 429 only; nothing was created before."""

    def away(*_: Any) -> None:
        raise TemporarilyUnavailable("The store is not available.")

    with monkeypatch.context() as patch:
        patch.setattr(uploaded_files, "write", away)
        refused = ask(uploaded("helper", GOOD))
        assert (refused.status, _files(folder)) == (429, {})
    assert ask(get("/helper")).status == 404
    assert ask(uploaded("helper", GOOD)).body["version"] == 1
