"""The project of docs/add-a-project.md, taken from the document itself and installed for a test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "add-a-project.md"
_BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> dict[str, str]:
    """File name → text of every named block of the document."""
    return dict(_BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")))


class ExampleProject:
    """The example's files in a folder of their own, found through PYTHONPATH as an installed distribution would be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in blocks().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        meta = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        info = folder / f"{meta['name']}-{meta['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {meta['name']}\nVersion: {meta['version']}\n")
        lines = [f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
                 for group, entries in meta["entry-points"].items()]  # fmt: skip
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        self.config = folder / "spiral.yaml"
        self.runs = folder / "runs"
        self.path = os.pathsep.join([str(folder), str(ROOT)])
        """Of processes: the example, and the tree that is tested, whichever is installed."""
        self.env = {
            **os.environ, "PYTHONPATH": self.path, "COCKPIT_RUNS": str(self.runs), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -P …` with the example installed, from its folder."""
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            check=False,
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def train(self, name: str, *settings: str) -> subprocess.CompletedProcess[str]:
        """Train in the foreground into `runs/<name>`."""
        overrides = [part for setting in settings for part in ("--set", setting)]
        return self.python(
            "-m", "engines.train", "--config", str(self.config), "--run-dir", str(self.runs / name), *overrides
        )
