"""A folder and a bucket, the latter on an S3 server, hold files in the same way."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcore import errors
from mlcore.artifacts import DirectoryEntry, Store, UploadedPart
from mlcore.artifacts.local_folder_store import Folder
from mlcore.artifacts.s3_store import Bucket
from tests import ministack
from tests.examples import number_of

pytestmark = pytest.mark.contract

KEYS = st.sampled_from(["a", "b/c", "b/d/e", "b/d/f", "g h/é+%", "b/d/g/h"])
PART_BYTES = 5 << 20


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with (
        ministack.running(tmp_path_factory.mktemp("s3")) as url,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ENDPOINT_URL_S3", url)
        ministack.make_bucket(url, "files")
        yield Bucket("files")


@pytest.fixture(params=["folder", "bucket"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Either, empty."""
    if request.param == "folder":
        yield Folder(tmp_path_factory.mktemp("folder"))
    else:
        made: Store = request.getfixturevalue("bucket")
        yield made
        made.delete_tree("")


def listed(files: dict[str, bytes], key: str) -> list[DirectoryEntry]:
    prefix = f"{key}/" if key else ""
    names = {path[len(prefix) :].split("/")[0] for path in files if path.startswith(prefix)}
    return [
        DirectoryEntry(name, len(files[prefix + name]) if prefix + name in files else None)
        for name in sorted(names)
    ]


def test_older_files_below_a_directory_go(store: Store) -> None:
    for key in ("b/c", "b/d/e", "bc", "b2/c"):
        store.put(key, b"x")
    written = store.open("b/d/e", 0)
    assert written is not None
    store.delete_older("b", written.modified - 5)
    store.delete_older("nothing", written.modified + 60)
    assert store.get("b/c") == store.get("b/d/e") == b"x"
    store.delete_older("b", written.modified + 60)
    assert store.list("") == [DirectoryEntry("b2", None), DirectoryEntry("bc", 1)]


@settings(
    max_examples=number_of(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_any_sequence_of_writes_and_deletions(store: Store, data: st.DataObject) -> None:
    store.delete_tree("")
    files: dict[str, bytes] = {}
    for _ in range(data.draw(st.integers(0, 8))):
        key = data.draw(KEYS)
        step = data.draw(st.sampled_from(["put", "put", "create", "delete", "tree"]))
        if step == "put":
            files[key] = data.draw(st.binary(max_size=5))
            store.put(key, files[key])
        elif step == "create":
            content = data.draw(st.binary(max_size=5))
            etag = store.create(key, content)
            assert (etag is None) == (key in files)
            files.setdefault(key, content)
            assert etag in {None, opened.etag if (opened := store.open(key, 0)) else ""}
        elif step == "delete":
            store.delete(key)
            files.pop(key, None)
        else:
            key = data.draw(st.sampled_from([key, "b", "b/d", "nothing"]))
            store.delete_tree(key)
            files = {
                path: content
                for path, content in files.items()
                if path != key and not path.startswith(f"{key}/")
            }
    for name in ("", "b", "b/d", "g h", "a", "nothing"):
        assert store.list(name) == listed(files, name)
        assert store.is_directory(name or "b") == bool(listed(files, name or "b"))
        below = [key for key in sorted(files) if not name or key.startswith(f"{name}/")]
        seen = [(file.key, file.size) for file in store.below(name)]
        assert seen == [(key, len(files[key])) for key in below]
        assert [file.key for file in store.below(name, "b/d/e")] == [
            key for key in below if key > "b/d/e"
        ]
    assert {key: store.get(key) for key in files} == files
    for file in store.below(""):
        opened = store.open(file.key, 0)
        assert opened is not None
        assert (opened.etag, opened.modified) == (file.etag, file.modified)
    assert store.get("nothing") is None


def test_opening(store: Store) -> None:
    assert store.open("a", 9) is None
    assert store.open("a", 0) is None
    store.put("a", b"12345")
    for most, content in ((0, None), (4, None), (5, b"12345")):
        opened = store.open("a", most)
        assert opened is not None
        assert (opened.size, opened.data) == (5, content)
        assert opened.etag.strip('"') != opened.etag


def sent(url: str, data: bytes | None = None) -> tuple[bytes, dict[str, str]]:
    request = urllib.request.Request(url, data, method="GET" if data is None else "PUT")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read(), dict(answer.headers.items())


def send_part(store: Store, key: str, upload_id: str, number: int, data: bytes) -> UploadedPart:
    if isinstance(store, Folder):  # its URLs are served by the local runner
        incoming = store.open_part_for_writing(key, upload_id, number)
        incoming.write(data)
        return UploadedPart(number, incoming.commit())
    url = store.part_url(key, upload_id, number, seconds=60, origin="")
    return UploadedPart(number, sent(url, data)[1]["ETag"])


def test_an_upload_in_parts(store: Store) -> None:
    upload = store.create_upload("a/b c")
    data = {2: b"rest", 1: bytes(PART_BYTES)}
    parts = [send_part(store, "a/b c", upload, number, data[number]) for number in data][::-1]
    assert parts[0].etag == f'"{hashlib.md5(data[1]).hexdigest()}"'
    assert store.get("a/b c") is None
    for wrong in (
        [parts[0], UploadedPart(2, parts[0].etag)],
        [*parts, UploadedPart(3, parts[0].etag)],
    ):
        with pytest.raises(errors.InvalidParameterValue):
            store.complete_upload("a/b c", upload, wrong)
    store.complete_upload("a/b c", upload, parts)
    store.complete_upload("a/b c", upload, parts)
    assert store.get("a/b c") == data[1] + data[2]


def test_an_upload_that_is_given_up(store: Store) -> None:
    upload = store.create_upload("a")
    part = send_part(store, "a", upload, 1, b"x")
    store.abort_upload("a", upload)
    store.abort_upload("a", upload)
    with pytest.raises(errors.ResourceDoesNotExist):
        store.complete_upload("a", upload, [part])
    assert store.list("") == []


def test_presigned_urls(bucket: Store) -> None:
    sent(bucket.upload_url("g h/é+%", seconds=60, content_type=None, origin=""), b"12345")
    url = bucket.download_url(
        "g h/é+%", seconds=60, content_type="text/plain", disposition="attachment", origin=""
    )
    content, headers = sent(url)
    assert content == b"12345"
    assert headers["Content-Type"] == "text/plain"
    assert headers["Content-Disposition"] == "attachment"
    assert "checksum" not in url


def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    gone = Bucket("files")
    for call in (lambda: gone.get("a"), lambda: gone.list(""), lambda: gone.put("a", b"")):
        with pytest.raises(errors.TemporarilyUnavailable):
            call()


def test_many_files(bucket: Store) -> None:
    """More than S3 lists or deletes at once."""
    bucket.delete_tree("")
    for number in range(1001):
        bucket.put(f"many/{number:04}", b"")
    assert len(bucket.list("many")) == 1001
    bucket.delete_tree("many")
    assert bucket.list("") == []
