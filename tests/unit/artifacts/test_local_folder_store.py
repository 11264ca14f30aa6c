"""What is a folder's own; that it behaves as a bucket does is a contract of both."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import errors
from mlcore.artifacts import UploadedPart, local_folder_store
from mlcore.artifacts.local_folder_store import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "artifacts")


def test_a_link_is_no_file(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder.files / "link").symlink_to(tmp_path / "secret")
    (folder.files / "dir").symlink_to(tmp_path)
    assert folder.list("") == []
    for key in ("link", "dir/secret", "dir", "../secret", "x/../../secret", "", "/etc/passwd"):
        for attempt in (folder.get, folder.list, folder.delete, lambda key: folder.put(key, b"x")):
            with contextlib.suppress(errors.InvalidParameterValue):
                assert attempt(key) in (None, [])
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_directory_is_no_file(folder: Folder) -> None:
    folder.put("a/b", b"x")
    for key in ("a", "a/b/c"):
        with pytest.raises(errors.InvalidParameterValue):
            folder.put(key, b"y")
    assert folder.get("a/b") == b"x"
    assert folder.open("a/b", 0) is not None


def send(folder: Folder, key: str, upload_id: str, number: int, data: bytes) -> UploadedPart:
    incoming = folder.open_part_for_writing(key, upload_id, number)
    incoming.write(data)
    return UploadedPart(number, incoming.commit())


def test_an_upload_that_is_completed_twice_at_once(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a client that repeats a request which took long: before each part of the first one,
    the other one completes the upload."""
    copy = local_folder_store._copy
    for at in range(3):
        key = f"a/{at}"
        upload = folder.create_upload(key)
        parts = [send(folder, key, upload, number, bytes([number]) * 7) for number in (1, 2, 3)]
        numbers = itertools.count()

        def meet(source: Path, target: Any, *, key: str = key, at: int = at, **of: Any) -> Any:
            if next(of["numbers"]) == at:
                folder.complete_upload(key, of["upload"], of["parts"])
            return copy(source, target)

        repeated = partial(meet, numbers=numbers, upload=upload, parts=parts)
        with monkeypatch.context() as patch:
            patch.setattr(local_folder_store, "_copy", repeated)
            folder.complete_upload(key, upload, parts)
        assert folder.get(key) == bytes([1] * 7 + [2] * 7 + [3] * 7)


def test_an_upload_that_is_aborted_when_its_file_is_there(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a client that gives up an upload whose completion takes long: it is complete."""
    upload = folder.create_upload("a")
    part = send(folder, "a", upload, 1, b"x")
    publish = Folder.publish

    def publish_and_abort(self: Folder, source: Path, target: Path, key: str) -> None:
        publish(self, source, target, key)
        self.abort_upload("a", upload)

    monkeypatch.setattr(Folder, "publish", publish_and_abort)
    folder.complete_upload("a", upload, [part])
    assert folder.get("a") == b"x"


def test_an_upload_in_parts(folder: Folder) -> None:
    upload = folder.create_upload("a/b")
    parts = [send(folder, "a/b", upload, number, bytes([number]) * 7) for number in (2, 1)][::-1]
    assert parts[0].etag == f'"{hashlib.md5(bytes([1]) * 7).hexdigest()}"'
    assert folder.get("a/b") is None
    for wrong in ([parts[0], UploadedPart(2, parts[0].etag)], [*parts, UploadedPart(3, "x")]):
        with pytest.raises(errors.InvalidParameterValue):
            folder.complete_upload("a/b", upload, wrong)
    with pytest.raises(errors.ResourceDoesNotExist):
        folder.complete_upload("another", upload, parts)
    folder.complete_upload("a/b", upload, parts)
    folder.complete_upload("a/b", upload, parts)
    assert folder.get("a/b") == b"\1" * 7 + b"\2" * 7


def test_an_upload_that_is_given_up(folder: Folder) -> None:
    upload = folder.create_upload("a")
    part = send(folder, "a", upload, 1, b"x")
    folder.abort_upload("a", upload)
    folder.abort_upload("a", upload)
    for unknown in (upload, "../files", ""):
        with pytest.raises(errors.ResourceDoesNotExist):
            folder.complete_upload("a", unknown, [part])
    assert folder.list("") == []


@given(st.text("ab/? é%&=+", min_size=1, max_size=12))
def test_signed_urls(tmp_path_factory: pytest.TempPathFactory, key: str) -> None:
    folder = Folder(tmp_path_factory.mktemp("f"))
    url = urlsplit(folder.upload_url(key, seconds=9, content_type=None, origin="http://h:1"))
    check = Folder(folder.files.parent).signer.check
    assert url.netloc == "h:1"
    checked = check("PUT", url.path, url.query)
    assert checked is not None
    assert checked[0] == key
    assert check("GET", url.path, url.query) is None
    assert check("PUT", url.path + "x", url.query) is None
    assert check("PUT", url.path, url.query + "&a=b") is None
    assert check("PUT", url.path, url.query.replace("expires=1", "expires=2")) is None
    assert check("PUT", url.path, "") is None
    late = urlsplit(folder.upload_url(key, seconds=-1, content_type=None, origin=""))
    assert check("PUT", late.path, late.query) is None
