"""No remover takes a file that something else can name, and what nobody names goes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.lifecycle import file_removals
from mlcore import artifacts as port
from mlcore import queues
from mlcore.artifacts.local_folder_store import Folder
from mlcore.artifacts.paths import covers
from mlcore.entities.workspaces import Workspace
from mlcore.environment import settings
from mlcore.repos.removal import former_root_locations, garbage, permanent_deletion
from mlcore.repos.workspaces import workspaces as repo
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces, examples, forget
from tests.contract.file_world import SCHEME, World, deliver
from tests.contract.streams import following
from workspaces import removal

STEPS = ("own", "place", "announce", "arrive", "run", "run", "model", "version")
ENDS = ("delete", "delete part", "expire", "expire part", "delete version", "collect")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARTIFACT_FOLDER", str(tmp_path_factory.mktemp("store")))
        patch.setenv(file_removals.QUEUE, "queue")
        patch.setattr(queues, "send", deliver)
        patch.setattr(file_removals, "_time_ms", lambda _: 1 << 53)
        port.store.cache_clear()
        made = port.store()
        assert isinstance(made, Folder)
        yield made
        port.store.cache_clear()


def _step(world: World, step: str, draw: Any) -> None:
    there, alive = world.alive()
    here = [experiment for experiment in world.experiments if experiment.item_id in there]
    parts = [part for part in world.parts if part.item_id in alive]
    listed = [experiment for experiment in here if experiment.item_id not in world.gone]
    usable = [part for part in parts if {part.item_id, part.experiment_id}.isdisjoint(world.gone)]
    if step == "own":
        world.experiment(None)
    elif step == "place":
        world.experiment(draw(st.sampled_from(world.places())))
    elif step in ("announce", "arrive", "collect"):
        getattr(world, step)()
    elif step in ("run", "model") and listed:
        getattr(world, step)(draw(st.sampled_from(listed)))
    elif step == "version" and usable:
        world.version(draw(st.sampled_from(usable)))
    elif step == "delete version" and world.versions:
        world.delete(draw(st.sampled_from(world.versions)))
    elif step in ("delete", "delete part"):
        choices = listed if step == "delete" else usable
        if choices:
            item = draw(st.sampled_from(choices))
            world.delete(item)
            world.gone.add(item.item_id)
    elif step in ("expire", "expire part"):
        choices = here if step == "expire" else parts
        if choices:
            world.expire(draw(st.sampled_from(choices)))


def _check(world: World) -> None:
    there, alive = world.alive()
    left = world.remaining()
    places = {experiment.folder for experiment in world.experiments if experiment.item_id in there}
    for file, owner in world.files.items():
        lives = owner.item_id in (there if owner.kind == "experiment" else alive)
        registered = any(covers(version.folder, file) for version in world.versions)
        if lives or registered:
            assert file in left, (file, owner, lives, world.experiments)
        elif file not in world.left and not any(covers(folder, file) for folder in places):
            assert file not in left, (file, owner, world.experiments)


@examples(8)
@given(data=st.data())
def test_files_go_with_the_last_that_names_them(
    shared_store: Store, files: Folder, data: st.DataObject
) -> None:
    """Experiments, runs, models and versions in places that overlap at random, some taken before
    their owner was there; deleted, collected or expired in any order. Whose item is there has its
    files. A file that nobody has around it is gone, at the end all are; but for what a model
    version had when nobody else was left."""
    forget()
    with following(shared_store, latest=True) as stream:
        world = World(shared_store, files, stream)
        made = data.draw(st.lists(st.sampled_from(STEPS), min_size=3, max_size=12))
        ends = st.lists(st.sampled_from((*ENDS, *STEPS)), max_size=8)
        for step in ("own", "run", *made, *data.draw(ends)):
            _step(world, step, data.draw)
            if step.startswith(("expire", "collect")):
                _check(world)
        for version in list(world.versions):
            world.delete(version)
        there, _ = world.alive()
        for experiment in world.experiments:
            if experiment.item_id in there and experiment.item_id not in world.gone:
                world.delete(experiment)
        world.collect()
        assert world.remaining() <= world.left
        shutil.rmtree(files.files)
        files.files.mkdir()


def test_what_a_version_had_alone_goes_with_an_experiment_around_it(
    store: Store, files: Folder
) -> None:
    """Nothing tells whose a folder was once its experiment is gone, so no remover takes it with the
    version."""
    with following(store) as stream:
        world = World(store, files, stream)
        world.experiment(None)
        (owner,) = world.experiments
        world.run(owner)
        (run,) = world.parts
        world.version(run)
        world.expire(owner)
        (kept,) = world.remaining()
        assert world.files[kept] == run
        world.delete(world.versions[0])
        world.collect()
        assert world.remaining() == world.left == {kept}
        world.experiment(owner.folder)
        world.delete(world.experiments[-1])
        world.collect()
        assert world.remaining() == set()


def test_what_a_version_kept_goes_with_its_experiment(store: Store, files: Folder) -> None:
    with following(store) as stream:
        world = World(store, files, stream)
        world.experiment(None)
        (owner,) = world.experiments
        world.run(owner)
        (run,) = world.parts
        world.version(run)
        world.expire(run)
        world.delete(world.versions[0])
        world.follow()
        assert run in {world.files[file] for file in world.remaining()}
        world.expire(owner)
        assert world.remaining() == world.left == set()


def test_experiments_that_share_a_place(store: Store, files: Folder) -> None:
    api = store.api
    one, other = (api.new_experiment(n, artifact_location=SCHEME + "team") for n in ("a", "b"))
    runs = {each: api.new_run(each) for each in (one, other)}
    for run_id in runs.values():
        files.put(f"team/{run_id}/artifacts/f", b"x")
    files.put("team/readme", b"x")
    api.post("experiments/delete", experiment_id=one)
    (removable,) = garbage.find(1 << 53)
    assert garbage.remove(removable) is False
    assert files.get(f"team/{runs[one]}/artifacts/f") is None
    assert files.get(f"team/{runs[other]}/artifacts/f") == b"x"
    assert files.get("team/readme") == b"x"
    api.post("experiments/delete", experiment_id=other)
    (removable,) = garbage.find(1 << 53)
    assert garbage.remove(removable) is True
    assert files.list("") == []
    assert not [item for item in store.items() if item["type"]["S"] == "location"]


def test_default_folders_below_a_former_root_are_entered_before_files_go(
    store: Store, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they are in the list, nothing goes: another experiment may have chosen one of them."""
    api = store.api
    owner = api.new_experiment("owner")
    run_id = api.new_run(owner)
    folder = f"{owner}/{run_id}/artifacts"
    files.put(f"{folder}/mine", b"x")
    assert not [item for item in store.items() if item["type"]["S"].startswith("location")]
    monkeypatch.setenv("ARTIFACT_ROOT", SCHEME + "other-root")
    settings.cache_clear()
    forget()
    try:
        around = api.new_experiment("around", artifact_location=SCHEME + owner)
        files.put(f"{owner}/theirs", b"x")
        assert not former_root_locations.enter_locations(-1.0)
        forget()
        api.post("experiments/delete", experiment_id=around)
        (removable,) = garbage.find(1 << 53)
        assert garbage.remove(removable) is False
        assert files.get(f"{folder}/mine") == b"x"
        assert former_root_locations.enter_locations()
        (listed,) = [item for item in store.items() if item["type"]["S"] == "location_list"]
        assert listed["root"] == {"S": SCHEME + "other-root"}
    finally:
        monkeypatch.undo()
        settings.cache_clear()
        forget()


def test_a_store_keeps_what_it_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a")
    for key in ("a/b/c", "a/bc", "a/d/e/f", "a/d/e", "x"):
        if key != "a/d/e":
            folder.put(key, b"x")
    folder.delete_tree("a", ["a/b", "a/d/e/f"])
    assert sorted(entry.name for entry in folder.list("a")) == ["b", "d"]
    folder.delete_older("", 1 << 40, ["a"])
    assert [entry.name for entry in folder.list("")] == ["a"]
    folder.delete_tree("a", ["a"])
    folder.delete_tree("a")
    assert folder.list("") == []


def test_what_left_a_workspace_keeps_its_files(
    store: Store, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace of the same name comes and goes with all that is in it."""
    enable_workspaces(monkeypatch, "team-w")
    monkeypatch.setattr(removal, "WORK_SECONDS", 60.0)
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    made = Api("team-w").new_experiment("moved")
    run_id = Api("team-w").new_run(made)
    kept = {
        f"workspaces/team-w/{made}/{run_id}/artifacts/f",
        f".internal/workspaces/team-w/traces/{made}/t/pack",
        f"workspaces/team-w2/{made}/f",
    }
    _end("team-w", "SET_DEFAULT")
    repo.create(Workspace("team-w", None))
    second = Api("team-w").new_experiment("second")
    gone = {f"workspaces/team-w/{second}/f", f".internal/workspaces/team-w/traces/{second}/p"}
    for path in (*kept, *gone, "workspaces/team-w/loose"):
        files.put(path, b"x")
    _end("team-w", "CASCADE")
    left = {path for path in (*kept, *gone, "workspaces/team-w/loose") if files.get(path)}
    assert left == kept
    # What an experiment left in the folder of a workspace goes with it.
    permanent_deletion.experiment(made)
    of_spans = f".internal/workspaces/team-w/traces/{made}/t/pack"
    assert {path for path in kept if files.get(path)}.isdisjoint({of_spans})
    shutil.rmtree(files.files)
    files.files.mkdir()


def _end(name: str, mode: str) -> None:
    read = repo.find(name)
    assert read is not None
    removal._empty(read, mode, float("inf"))
    assert repo.delete(repo.find(name) or read)
