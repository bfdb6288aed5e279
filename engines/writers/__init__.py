"""Writers mirror a run to other programs: `output.writers: [tensorboard, wandb]`.

Each is a process of its own beside the engine. It reads what the engine logs anyway, the run directory, so the loop
hands nothing over and waits for nothing: a slow writer lags, a failing one is reported once, and no row is lost.
"""

from __future__ import annotations

from importlib.util import find_spec

from engines.contract.references import PIP_INSTALL

PACKAGES = {"tensorboard": None, "wandb": "wandb"}
"""The package that each writer needs. Event files are written by our own code; only looking at them needs a package."""


def why_not(name: str) -> str:
    """A sentence where a writer cannot work here; empty where it can."""
    package = PACKAGES[name]
    if package is None or find_spec(package) is not None:
        return ""
    return (
        f"output.writers: {name} needs the package {package}, which is not installed: {PIP_INSTALL} 'cockpit[{name}]'."
    )
