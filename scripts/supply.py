"""What cockpit is made of, and whether any of it is known to be vulnerable.

`python -m scripts.supply [--out FILE] [--audit]` writes a CycloneDX bill of materials of the pinned packages; the same
pins give the same bytes. `--audit` asks pip-audit about each of them, which needs the network; `--advisories FILE` asks
advisories in OSV's format instead: a JSON list, one a line, or a folder of files with one each, as osv.dev gives them
out. Exit code 1: something is vulnerable, or could not be asked about.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.set_up import KERNELS, ROOT, TORCH_WITHOUT_GPU

_PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+-]+)")
NAMESPACE = uuid.UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")
"""Of serial numbers, which are made from the content: RFC 9562's for object identifiers."""
PIP_AUDIT = (sys.executable, "-m", "pip_audit")
PIP_AUDIT_OPTIONS = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
NEEDS_PIP_AUDIT = "pip-audit is not installed: `python -m pip install pip-audit`, in an environment of its own."


def pins(root: Path = ROOT) -> dict[str, str]:
    """Version by normal name (PEP 503) of every package that the set-up scripts install in a fixed version."""
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [match for line in (*lines, TORCH_WITHOUT_GPU, *KERNELS) if (match := _PIN.fullmatch(line.strip()))]
    return dict(sorted((normal(match[1]), match[2]) for match in found))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def bill_of_materials(packages: Mapping[str, str], root: Path = ROOT) -> dict[str, Any]:
    """CycloneDX 1.6: a component per package, with its licence where the package is installed and says it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [_component(name, version) for name, version in packages.items()]
    main = {"type": "application", "name": project["name"], "version": project["version"], "bom-ref": project["name"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps([main, components]))}",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _component(name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    component = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
    try:
        expression = importlib.metadata.metadata(name).json.get("license_expression")
    except importlib.metadata.PackageNotFoundError:
        expression = None
    return component | ({"licenses": [{"expression": expression}]} if expression else {})


def by_list(packages: Mapping[str, str], advisories: Iterable[Mapping[str, Any]]) -> list[str]:
    """Of the packages those that an advisory names in that version or in a range around it, a sentence each."""
    found = []
    for advisory in (one for one in advisories if not one.get("withdrawn")):
        for affected in advisory.get("affected", ()):
            name = normal(affected.get("package", {}).get("name", ""))
            ecosystem = affected.get("package", {}).get("ecosystem")
            if ecosystem == "PyPI" and name in packages and _is_affected(packages[name], affected):
                found.append(f"{name} {packages[name]}: {advisory['id']} {advisory.get('summary', '')}".rstrip())
    return sorted(set(found))


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """By OSV's evaluation: it is listed, or what happened last to it in a range is that the fault was introduced.

    A range with versions that are none counts as one around it.
    """
    from packaging.version import InvalidVersion, Version  # of the test environment

    if version in affected.get("versions", ()):
        return True
    own = Version(version)
    for each in affected.get("ranges", ()):
        if each.get("type") != "ECOSYSTEM":
            continue
        try:
            events = sorted((Version(at), kind) for event in each.get("events", ()) for kind, at in event.items())
        except InvalidVersion:
            return True
        inside = False
        for at, kind in events:
            if own > at or (own == at and kind != "last_affected"):
                inside = kind == "introduced"
        if inside:
            return True
    return False


def read_advisories(path: Path) -> list[dict[str, Any]]:
    """A JSON list of OSV advisories, one alone, a file of one per line, or a folder of files of one each.

    Exits with a sentence for what is none.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    found: list[Any] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
            try:
                content = json.loads(text)
            except ValueError:
                content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            sys.exit(f"{file} cannot be read as advisories ({error}); expected JSON in OSV's format.")
        found += content if isinstance(content, list) else [content]
    if not found or not all(isinstance(one, dict) and "id" in one for one in found):
        sys.exit(f"{path} holds no list of advisories; expected JSON in OSV's format, each with an id.")
    return found


def by_pip_audit(packages: Mapping[str, str], program: Sequence[str] = PIP_AUDIT) -> list[str]:
    """What pip-audit says, a sentence per vulnerability and per package that it could not ask about.

    An index without advisories, as mirrors are, makes it pass everything over and still end well: that is no answer.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.writelines(f"{name}=={version}\n" for name, version in packages.items())
        wanted.flush()
        command = [*program, "-r", wanted.name, *PIP_AUDIT_OPTIONS]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answers = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = (asked.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return [f"pip-audit gave no answer ({why}); without network, use --advisories FILE"]
    found = [
        f"{one['name']} {one['version']}: {each['id']}, fixed in {', '.join(each['fix_versions']) or 'no version'}"
        for one in answers for each in one.get("vulns", ())
    ]  # fmt: skip
    answered = {normal(one["name"]) for one in answers if "skip_reason" not in one}
    if missed := [name for name in packages if name not in answered]:
        shown = ", ".join(missed[:5]) + (f" and {len(missed) - 5} more" if len(missed) > 5 else "")
        found.append(f"not audited, the index has no advisories for them: {shown}; use --advisories FILE")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.supply", description="What cockpit is made of.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the bill of materials; default: stdout")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--audit", action="store_true", help="ask pip-audit, over the network")
    which.add_argument("--advisories", type=Path, metavar="FILE", help="ask OSV advisories in a file or folder instead")
    given = parser.parse_args(arguments)
    packages = pins()
    text = json.dumps(bill_of_materials(packages), indent=2, ensure_ascii=False) + "\n"
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")
    if given.audit and importlib.util.find_spec("pip_audit") is None:
        print(NEEDS_PIP_AUDIT, file=sys.stderr)
        return 1
    found = by_pip_audit(packages) if given.audit else []
    if given.advisories is not None:
        found = by_list(packages, read_advisories(given.advisories))
    for sentence in found:
        print(sentence, file=sys.stderr)
    if (given.audit or given.advisories) and not found:
        print(f"{len(packages)} packages, none of them known to be vulnerable", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
