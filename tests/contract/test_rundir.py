"""Run directories: made privately, refused where they cannot be, found by what a person types."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from engines.basics import files
from engines.basics.errors import DataError, UserError
from engines.contract.rundir import Attempt, ProcessMark, RunDirectory
from engines.runs import launch, saved
from engines.runs.store import WORDS, create_run, find_run, find_training, list_runs, new_run_id
from tests.support.fake_run import FakeRun


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runs"
    monkeypatch.setenv("COCKPIT_RUNS", str(folder))
    return folder


def make(path: Path | None = None, project: str = "controls", label: str = "") -> RunDirectory:
    return create_run(
        project, "project: controls\n", kind="training", engine="engines.train", title="a.yaml", label=label, path=path
    )


def test_a_new_run_has_its_id_its_config_and_private_folders(runs: Path) -> None:
    run = make(label="mine")
    assert run.path.parent == runs
    assert run.info.id == run.path.name
    assert re.fullmatch(r"controls-\d{8}-\d{6}-[a-z]+", run.info.id)
    assert run.info.label == "mine"
    assert run.config.read_text() == "project: controls\n"
    for entry in (run.path, *run.path.rglob("*")):
        assert entry.stat().st_mode & 0o077 == 0, entry


def test_ids_are_of_their_time_in_utc() -> None:
    assert re.fullmatch(r"sim-19700102-030405-[a-z]+", new_run_id("sim", 86400 + 3 * 3600 + 4 * 60 + 5))


@pytest.mark.behaviour("words-not-in-use")
def test_a_word_in_use_is_not_drawn_until_all_are() -> None:
    left = {"fern", "moss"}
    drawn = {new_run_id("sim", taken=set(WORDS) - left).rsplit("-", 1)[-1] for _ in range(40)}
    assert drawn == left
    assert new_run_id("sim", taken=WORDS).rsplit("-", 1)[-1] in WORDS


@pytest.mark.behaviour("words-not-in-use")
def test_runs_of_a_folder_have_words_of_their_own(runs: Path) -> None:
    words = [make().path.name.rsplit("-", 1)[-1] for _ in range(len(WORDS))]
    assert sorted(words) == sorted(WORDS)


def test_ids_that_are_taken_are_not_given_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["controls-1-1-oak", "controls-1-1-oak", "controls-1-1-elm", "controls-1-1-elm", "controls-1-1-fir"])
    monkeypatch.setattr("engines.runs.store.new_run_id", lambda project, taken: next(ids))
    names = [make().path.name, make().path.name, make(path=runs.parent / "own").info.id]
    assert names == ["controls-1-1-oak", "controls-1-1-elm", "controls-1-1-fir"]


def test_an_output_dir_is_the_run_and_is_listed_once(runs: Path, tmp_path: Path) -> None:
    run = make(path=tmp_path / "output")
    assert run.path == tmp_path / "output"
    (listed,) = list_runs()
    assert listed.path.name == run.info.id
    assert listed.path.resolve() == run.path
    assert find_run(run.info.id).info == run.info


def test_a_run_in_the_place_of_one_that_was_deleted_there_is_listed_once(runs: Path, tmp_path: Path) -> None:
    make(path=tmp_path / "other")
    shutil.rmtree(make(path=tmp_path / "output").path)
    run = make(path=tmp_path / "output")
    assert sorted(found.path.resolve() for found in list_runs()) == [tmp_path / "other", run.path]
    assert find_run(run.info.id).info == run.info


def test_an_output_dir_in_the_runs_folder_goes_by_its_own_name(runs: Path) -> None:
    run = make(path=runs / "first-try")
    assert run.info.id == "first-try"
    assert [found.path for found in list_runs()] == [runs / "first-try"]


def test_an_occupied_output_dir_is_refused_and_left_alone(runs: Path, tmp_path: Path) -> None:
    first = make(path=tmp_path / "output")
    before = sorted(first.path.rglob("*"))
    with pytest.raises(UserError) as refused:
        make(path=tmp_path / "output")
    assert f"cockpit resume {tmp_path / 'output'}" in str(refused.value)
    assert refused.value.exit_code == 1
    assert sorted(first.path.rglob("*")) == before
    assert len(list_runs()) == 1


def test_an_empty_folder_may_be_the_output_dir(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert make(path=tmp_path / "empty").info.project == "controls"


@pytest.mark.parametrize("place", ["file/below", "/proc/nowhere/run"])
def test_an_output_dir_that_cannot_be_made_is_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"choose another output.dir or set COCKPIT_RUNS.*\.$") as refused:
        make(path=tmp_path / place)
    assert re.search(r"at (\S+/file/below|/proc/nowhere) \(", str(refused.value))
    assert list_runs() == []


def test_a_runs_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "file" / "runs"))
    with pytest.raises(DataError, match="Not a directory"):
        make()


@pytest.mark.behaviour("full-disk-takes-nothing")
@pytest.mark.parametrize("call", range(3))
@pytest.mark.parametrize("elsewhere", [False, True])
def test_of_a_run_that_cannot_be_written_nothing_is_left(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, elsewhere: bool
) -> None:
    """The disk is full at the first, the second or the third file of a new run, wherever its directory is."""
    real, calls = files.replace_bytes, iter(range(9))

    def replace(path: Path, content: bytes) -> None:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, content)

    monkeypatch.setattr(files, "replace_bytes", replace)
    path = tmp_path / "elsewhere" if elsewhere else None
    with pytest.raises(DataError, match=r"cannot be written \(No space left on device\); it was removed again"):
        make(path)
    assert list(runs.iterdir()) == []
    assert path is None or not path.exists()


def test_records_are_read_back_and_damage_is_named(tmp_path: Path) -> None:
    run = FakeRun(tmp_path).begin().end("failed", exit_code=None, signal="SIGKILL").run
    attempt = run.newest_attempt()
    assert attempt is not None
    assert attempt.ended is not None
    assert attempt.ended.signal == "SIGKILL"
    (run.attempts / "1.json").write_text('{"number": 1')
    with pytest.raises(DataError, match=r"attempts/1\.json cannot be read"):
        run.newest_attempt()
    run.info_file.write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"run\.json cannot be read as a run's record"):
        _ = run.info
    run.info_file.unlink()
    with pytest.raises(DataError, match=r"has no run\.json"):
        _ = run.info


def test_the_newest_attempt_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path)
    assert fake.run.newest_attempt() is None
    for number in (9, 10, 2):
        fake.run.write_attempt(Attempt(number=number, started=0.0, supervisor=ProcessMark(1, 0.0)))
    (fake.run.attempts / "notes.json").write_text("not an attempt")
    assert fake.run.attempt_numbers() == [2, 9, 10]
    newest = fake.run.newest_attempt()
    assert newest is not None
    assert newest.number == 10


def test_a_run_directory_keeps_its_place_when_the_current_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeRun(tmp_path, "own")
    monkeypatch.chdir(tmp_path)
    run = RunDirectory(Path("own"))
    monkeypatch.chdir("/")
    assert run.info.id == "own"
    assert run.path == tmp_path / "own"


NAMES = ("agent-20261127-201500-oak", "controls-20261127-201400-amber", "controls-20261127-201400-ash")


@pytest.fixture
def three(runs: Path) -> list[FakeRun]:
    runs.mkdir()
    labels = ("", "", "Wide Head")
    return [
        FakeRun(runs, name, label=label, created=float(index))
        for index, (name, label) in enumerate(zip(NAMES, labels, strict=True))
    ]


@pytest.mark.behaviour("found-by-word-label-part")
def test_a_word_or_label_goes_before_a_part_of_another(three: list[FakeRun], runs: Path) -> None:
    FakeRun(runs, "sim-20261128-201400-fern", label="ash")
    FakeRun(runs, "sim-20261128-201500-moss", label="amber two")
    assert find_run("ash").path.name == NAMES[2]
    assert find_run("amber").path.name == NAMES[1]
    with pytest.raises(UserError, match=r"'sim-' could be sim-20261128-201400-fern or sim-20261128-201500-moss"):
        find_run("sim-")


@pytest.mark.behaviour("last-is-a-training")
def test_last_among_trainings_passes_over_newer_tasks(runs: Path) -> None:
    def task() -> RunDirectory:
        return create_run("controls", "task: export", kind="task", engine="engines.task", title="an export")

    task()
    with pytest.raises(UserError, match=r"is a task \(an export\); expected a training"):
        find_training("last")
    training = make()
    newest = task()
    assert find_run("last").path == find_training("last").path == training.path
    assert find_training(training.info.id).path == training.path
    with pytest.raises(UserError, match="expected a training"):
        find_training(newest.info.id)


@pytest.mark.behaviour("found-by-word-label-part")
@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (NAMES[1], 1), ("agent", 0), ("controls-20261127-201400-am", 1), ("last", 2),
        ("amber", 1), ("mbe", 1), ("-ash", 2), ("201500", 0), ("Wide Head", 2), ("wide", 2),
    ],
)  # fmt: skip
def test_a_run_is_found_by_id_word_label_part_or_last(typed: str, meant: int) -> None:
    assert find_run(typed).path.name == NAMES[meant]


def test_an_id_that_begins_another_is_itself(three: list[FakeRun], runs: Path) -> None:
    FakeRun(runs, NAMES[1] + "x")
    assert find_run(NAMES[1]).path.name == NAMES[1]


def test_a_run_is_found_by_path(three: list[FakeRun], runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_run(str(three[2].run.path)).path == three[2].run.path
    monkeypatch.chdir(runs)
    assert find_run(f"./{NAMES[0]}/").path == three[0].run.path
    elsewhere = FakeRun(runs.parent / "elsewhere", "copied")
    assert find_run(str(elsewhere.run.path)).info.id == "copied"


@pytest.mark.behaviour("found-by-word-label-part")
@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("controls-", f"could be {NAMES[1]} or {NAMES[2]}; give more of the id"),
        ("controls-20261127-201400-ambre", f"did you mean '{NAMES[1]}'"),
        ("nothing-like-it", "`cockpit ls` lists the runs"),
        ("", "RUN is empty"),
        ("/nowhere", "No run is called"),
    ],
)
def test_a_run_that_is_not_found_is_told(typed: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        find_run(typed)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_what_is_there_but_is_no_run_is_called_that(runs: Path) -> None:
    (runs / "controls-20261127-201400-amber").mkdir(parents=True)
    (runs / "a file").write_text("no run")
    with pytest.raises(DataError, match=r"201400-amber is not a run directory: it has no run\.json"):
        find_run("controls-20261127-201400-amber")
    with pytest.raises(DataError, match=r"a file/run\.json cannot be read"):
        find_run("a file")


def test_without_runs_there_is_no_last() -> None:
    with pytest.raises(UserError, match="No run is called 'last'"):
        find_run("last")


def test_last_passes_over_a_damaged_run(three: list[FakeRun]) -> None:
    three[2].run.info_file.write_text("{")
    assert find_run("last").path.name == NAMES[1]


def test_runs_are_listed_newest_first_and_other_folders_are_not_runs(three: list[FakeRun], runs: Path) -> None:
    FakeRun(runs, "my-own-project-20261127-201430-elm")
    (runs / "notes").mkdir()
    os.symlink(runs / "gone", runs / "controls-20261127-201600-fir")
    os.symlink("x" * 300, runs / "controls-20261127-201700-elm")  # stat fails, as where entering is forbidden
    names = [run.path.name for run in list_runs()]
    assert names == [NAMES[0], "my-own-project-20261127-201430-elm", NAMES[2], NAMES[1]]


@pytest.mark.behaviour("writes-inside-its-directory")
def test_a_start_refuses_what_would_be_written_elsewhere(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "runs").begin()
    for place in (fake.run.checkpoints, fake.run.events, fake.run.lock, fake.run.stdout.parent, fake.run.review):
        kept, elsewhere = place.with_name("kept"), tmp_path / "elsewhere"
        if place.exists():
            place.rename(kept)
        place.symlink_to(elsewhere)
        with pytest.raises(DataError, match="is a link, and a run writes into its own directory"):
            launch.start(fake.run)
        assert not elsewhere.exists()
        place.unlink()
        if kept.exists():
            kept.rename(place)


def test_a_run_that_saves_while_its_shards_are_taken_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a checkpoint is a file that says nothing but which shards it has."""
    source, target, real = tmp_path / "run" / "last.pt", tmp_path / "fork" / "fork.pt", files.replace_by_link
    monkeypatch.setattr(saved, "shards_of", lambda path: path.read_text())

    def save(folder: str) -> None:
        files.make_directory(source.parent / folder)
        for name in ("1.safetensors", "2.safetensors"):
            (source.parent / folder / name).write_text(folder)
        files.replace_bytes(source, folder.encode())

    def link(one: Path, other: Path) -> None:
        real(one, other)
        if one.name == "1.safetensors" and one.read_text() == "shards_1_1":  # the run saves just now
            save("shards_2_1")
            shutil.rmtree(source.parent / "shards_1_1")

    files.make_directory(target.parent)
    save("shards_1_1")
    monkeypatch.setattr(files, "replace_by_link", link)
    saved.take_checkpoint(source, target)
    assert target.read_text() == "shards_2_1"
    taken = {file.relative_to(target.parent).as_posix() for file in target.parent.glob("*/*")}
    assert taken == {"shards_2_1/1.safetensors", "shards_2_1/2.safetensors"}
