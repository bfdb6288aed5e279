"""What a run was made with, and what is told of it later: each cause by its name, and nothing where nothing changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from engines.contract.config import LoadedConfig, load_config
from engines.runs import fingerprint, provenance
from engines.runs.fingerprint import BLOCK, BLOCKS
from engines.runs.launch import prepare_resume
from engines.runs.provenance import Provenance
from tests.support.fake_run import FakeRun, stopped_early


@pytest.fixture
def stopped(tmp_path: Path) -> FakeRun:
    return stopped_early(FakeRun(tmp_path / "runs"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two recordings that are read whole, and one after them that is sampled."""
    monkeypatch.setattr(fingerprint, "WHOLE_BYTES", 40_000)
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, content in (
        ("a.npz", bytes(range(256)) * 100), ("b.npz", bytes(9000)), ("large.npz", bytes(2 * BLOCK * BLOCKS))
    ):  # fmt: skip
        (folder / name).write_bytes(content)
    return folder


def taken(folder: Path) -> fingerprint.Fingerprint:
    return fingerprint.take(folder, sorted(folder.glob("*.npz")))


def write_at(path: Path, place: int) -> None:
    """Another byte there, and another time."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, (1, 1))


@pytest.mark.behaviour("data-code-versions-machine")
def test_data_that_is_copied_is_the_same(data: Path) -> None:
    then = taken(data)
    subprocess.run(["cp", "-r", data, data.with_name("elsewhere")], check=True)
    os.utime(data.with_name("elsewhere") / "a.npz", (1, 1))
    now = taken(data.with_name("elsewhere"))
    assert [(name, file.read) for name, file in now.items()] == [
        ("a.npz", "whole"), ("b.npz", "whole"), ("large.npz", "samples")
    ]  # fmt: skip
    assert fingerprint.changes(then, now) == ""


def test_each_change_of_the_data_is_named_with_its_file(data: Path) -> None:
    then = taken(data)
    write_at(data / "a.npz", 77)
    assert fingerprint.changes(then, taken(data)) == "1 of 3 files changed (a.npz)"
    (data / "b.npz").rename(data / "c.npz")
    write_at(data / "large.npz", -1)  # the last sample reaches the end
    now = taken(data)
    assert fingerprint.changes(then, now) == "2 of 2 files changed (a.npz, large.npz), 1 gone (b.npz), 1 new (c.npz)"
    assert fingerprint.doubts(then, now) == ""


def test_a_change_between_the_samples_of_a_large_file_is_a_doubt(data: Path) -> None:
    then = taken(data)
    write_at(data / "large.npz", BLOCK + 1)
    os.utime(data / "a.npz", (1, 1))
    now = taken(data)
    assert fingerprint.changes(then, now) == ""
    assert fingerprint.doubts(then, now) == "1 of 3 files written since (large.npz), alike in samples"
    assert fingerprint.doubts(then, then) == ""


def test_a_file_that_is_read_in_another_way_now_is_no_change(data: Path) -> None:
    then = taken(data)
    (data / "0.npz").write_bytes(bytes(39_000))
    assert fingerprint.changes(then, taken(data)) == "1 new (0.npz)"


def test_all_that_the_path_holds_is_data_but_for_what_is_hidden_and_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(data / "runs"))
    for name in ("runs/one/run.json", ".cache/x", "deep/er/d.bin", "__pycache__/x.pyc"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"")
    settings = load_config(Path("configs/controls_demo.yaml"), [f"data.path={data}"]).settings
    names = [str(path.relative_to(data)) for path in fingerprint.below(settings)]
    assert names == ["a.npz", "b.npz", "large.npz", "deep/er/d.bin"]


def made_with(**facts: str) -> Provenance:
    return Provenance(facts={"python": "3.11.9", "torch": "2.6.0", "code": "aa", "commit": "1234567890", **facts})


def test_what_changed_is_told_by_its_name_then_and_now() -> None:
    then = made_with(device="NVIDIA A100", threads="8")
    assert provenance.changed([then], then) == []
    now = made_with(device="NVIDIA H200", threads="2", torch="2.7.1")
    assert provenance.changed([then], now) == [
        "changed since then: torch: 2.6.0 → 2.7.1",
        "changed since then: device: NVIDIA A100 → NVIDIA H200",
        "changed since then: threads: 8 → 2",
    ]
    assert provenance.changed([made_with(torch="2.5.0"), made_with()], made_with()) == [
        "changed since then: torch: 2.5.0, then 2.6.0 → 2.6.0"
    ]


def test_code_is_told_by_the_commit_or_as_edited() -> None:
    then = made_with()
    assert provenance.changed([then], made_with(commit="ffff")) == []  # another commit, the same files
    assert provenance.changed([then], made_with(commit="ffff", code="bb")) == [
        "changed since then: code: commit 1234567890 → ffff"
    ]
    [edited] = provenance.changed([then], made_with(code="bb"))
    assert edited.endswith("code: engine or project files edited since commit 1234567890")


def controls(data: Path) -> LoadedConfig:
    return load_config(Path("configs/controls_demo.yaml"), [f"data.path={data}", "launch.threads=2"])


def test_a_project_file_that_is_edited_is_other_code(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "mine_own"
    package.mkdir()
    for name in ("__init__", "project"):
        (package / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = provenance._code("mine_own.project:Mine")
    assert provenance._code("mine_own.project:Mine") == before
    (package / "project.py").write_text("x = 1")
    assert provenance._code("mine_own.project:Mine") != before


@pytest.mark.behaviour("data-code-versions-machine")
def test_a_resume_tells_what_has_changed_and_goes_on(stopped: FakeRun, data: Path) -> None:
    loaded = controls(data)
    stopped.run.write_config(loaded.dump())
    (data / "notes.txt").write_text("no recording")
    then = provenance.current(loaded)
    then.facts["torch"] = "1.13.0"
    provenance.record(stopped.run, 1, then)
    (data / "notes.txt").write_text("still none")
    (data / "b.npz").unlink()
    told = [sentence for sentence in prepare_resume(stopped.run)[1] if "since" in sentence]
    now = provenance.versions()["torch"]
    assert told == [f"changed since then: torch: 1.13.0 → {now}", "changed since then: data: 1 gone (b.npz)"]


@pytest.mark.behaviour("preempted-and-moved")
def test_data_that_moved_with_its_volume_is_found_again(stopped: FakeRun, data: Path) -> None:
    loaded = controls(data)
    stopped.run.write_config(loaded.dump())
    provenance.record(stopped.run, 1, provenance.current(loaded))
    data.rename(moved := data.with_name("elsewhere"))
    told = [sentence for sentence in prepare_resume(stopped.run)[1] if "no data" in sentence]
    assert told == [f"there is no data at {data}; if it lies elsewhere now, resume with --set data.path=/its/place"]
    resume, sentences = prepare_resume(stopped.run, [f"data.path={moved}"])
    assert f"data.path: {data} → {moved}, applied" in sentences
    assert resume.config is not None
    assert str(moved) in resume.config
    assert not [sentence for sentence in sentences if "no data" in sentence]


def test_a_run_without_a_record_is_known_by_its_versions_and_a_damaged_one_by_nothing(stopped: FakeRun) -> None:
    attempt = stopped.run.attempt(1)
    attempt.versions = {"torch": "1.13.0", "cockpit": "0"}
    stopped.run.write_attempt(attempt)
    assert [one.facts for one in provenance.recorded(stopped.run)] == [{"torch": "1.13.0"}]
    provenance.record(stopped.run, 1, made_with())
    assert provenance.recorded(stopped.run) == [made_with()]
    stopped.run.provenance(1).write_bytes(msgspec.json.encode(made_with())[:-9])
    assert [one.facts for one in provenance.recorded(stopped.run)] == [{"torch": "1.13.0"}]


def test_the_commit_is_that_of_the_checkout_and_none_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "ENGINE", tmp_path / "engines")
    assert provenance.git_hash() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    head = next((tmp_path / ".git" / "refs" / "heads").iterdir()).read_text().strip()
    assert provenance.git_hash() == head
