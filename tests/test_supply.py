"""The bill of materials lists every pin, the same each time, and an audit that asked nothing is no good news."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from scripts import supply
from tests.support.example_project import ROOT

ADVISORY = {
    "id": "PYSEC-2026-1", "summary": "escapes",
    "affected": [{"package": {"ecosystem": "PyPI", "name": "Py_YAML"}, "versions": ["6.0.3", "6.0.4"]}],
}  # fmt: skip


@pytest.mark.behaviour("bill-of-materials")
def test_every_pin_is_a_component(tmp_path: Path) -> None:
    assert supply.main(["--out", str(tmp_path / "one.json")]) == supply.main(["--out", str(tmp_path / "two.json")]) == 0
    text = (tmp_path / "one.json").read_text()
    assert text == (tmp_path / "two.json").read_text()
    bom = json.loads(text)
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"])
    wanted = {
        f"pkg:pypi/{re.sub('[-_.]+', '-', line.split('==')[0]).lower()}@{line.split('==')[1]}"
        for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line and not line.startswith("#")
    }  # fmt: skip
    purls = {one["purl"] for one in bom["components"]}
    assert purls - wanted == {"pkg:pypi/torch@2.13.0", "pkg:pypi/mamba-ssm@2.3.1"}
    assert wanted <= purls
    refs = [one["bom-ref"] for one in bom["components"]]
    assert len(set(refs)) == len(refs)
    assert bom["dependencies"] == [{"ref": "cockpit", "dependsOn": refs}]
    (rich,) = (one for one in bom["components"] if one["name"] == "msgspec")
    assert rich["version"] == supply.pins()["msgspec"]


def test_an_offline_list_is_asked_by_name_and_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {**ADVISORY, "affected": [{"package": {"ecosystem": "npm", "name": "py-yaml"}, "versions": ["6.0.4"]}]}
    packages = {"py-yaml": "6.0.4", "rich": "15.0.0"}
    assert supply.by_list(packages, [ADVISORY, other, {"id": "x"}]) == ["py-yaml 6.0.4: PYSEC-2026-1 escapes"]
    assert supply.by_list({"py-yaml": "6.0.5"}, [ADVISORY]) == []
    assert supply.by_list(packages, [{**ADVISORY, "withdrawn": "2026-11-01T00:00:00Z"}]) == []
    (tmp_path / "list.json").write_text(json.dumps([ADVISORY]))
    assert supply.main(["--out", str(tmp_path / "bom"), "--advisories", str(tmp_path / "list.json")]) == 0
    assert "none of them known to be vulnerable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "affected"),
    [("0.9", False), ("1.0", True), ("1.9.9", True), ("2.0rc1", True), ("2.0", False), ("3.0", True), ("3.2", True),
     ("3.2.post1", False)],
)  # fmt: skip
def test_a_range_holds_what_was_introduced_and_not_fixed(version: str, affected: bool) -> None:
    events = [{"introduced": "1.0"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"last_affected": "3.2"}]
    package = {"ecosystem": "PyPI", "name": "rich"}
    advisory = {"id": "A", "affected": [{"package": package, "ranges": [{"type": "ECOSYSTEM", "events": events}]}]}
    assert supply.by_list({"rich": version}, [advisory]) == ([f"rich {version}: A"] if affected else [])


def test_advisories_are_a_list_lines_or_a_folder_and_else_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text(f"{json.dumps(ADVISORY)}\n{json.dumps(ADVISORY)}\n")
    assert supply.read_advisories(tmp_path / "lines.json") == [ADVISORY, ADVISORY]
    (tmp_path / "one.json").write_text(json.dumps(ADVISORY))
    assert supply.read_advisories(tmp_path) == [ADVISORY] * 3
    for content in ("", "{", "[]", "[3]", '{"a": 1}'):
        (tmp_path / "bad").write_text(content)
        with pytest.raises(SystemExit, match="OSV"):
            supply.read_advisories(tmp_path / "bad")


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ([{"name": "rich", "version": "15", "vulns": []}], []),
        (
            [{"name": "rich", "version": "15", "vulns": [{"id": "CVE-1", "fix_versions": ["16"]}]}],
            ["rich 15: CVE-1, fixed in 16"],
        ),
        (
            [{"name": "rich", "skip_reason": "Dependency not found on PyPI"}],
            ["not audited, the index has no advisories for them: rich; use --advisories FILE"],
        ),
        ([], ["not audited, the index has no advisories for them: rich; use --advisories FILE"]),
    ],
)
def test_what_pip_audit_passes_over_is_not_audited(printed: object, told: list[str]) -> None:
    answer = json.dumps({"dependencies": printed, "fixes": []})
    assert supply.by_pip_audit({"rich": "15"}, (sys.executable, "-c", f"print({answer!r})")) == told


def test_without_network_it_says_what_to_do() -> None:
    program = (sys.executable, "-c", "import sys; sys.exit('Temporary failure in name resolution')")
    (sentence,) = supply.by_pip_audit({"rich": "15"}, program)
    assert sentence == (
        "pip-audit gave no answer (Temporary failure in name resolution); without network, use --advisories FILE"
    )
