"""The demo of a project: its data, made when absent, and its training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.contract.rundir import RunDirectory
from engines.contract.shipped import SHIPPED
from engines.contract.spec import Spec
from engines.runs import launch
from engines.runs.demo_data import making_run


class Demo:
    """What `cockpit demo` does, step by step. Raises `UserError` for an unknown project or a bad override."""

    def __init__(self, project: str | None = None, overrides: Sequence[str] = ()) -> None:
        from engines.contract.config import load_config

        spec = specs.find(project) if project is not None else _the_one_with_a_demo()
        if spec.demo is None or "make" not in spec.tasks:
            raise UserError(f"The project {spec.name!r} has no demo; train a config of your own with `cockpit train`.")
        self.project = spec.name
        self.overrides = tuple(overrides)
        self.config = _config_file(spec.demo)
        self.data_path = Path(load_config(self.config, overrides).settings.data.path).expanduser().absolute()

    def data_run(self) -> RunDirectory | None:
        """The run that makes the data, started now or by another demo before; None when the data is there."""
        return making_run(self.project, self.data_path)

    def start(self) -> RunDirectory:
        """Start the training, detached. Raises `UserError` or `DataError`."""
        run = launch.prepare_training(self.config, self.overrides, label="demo")
        launch.start(run)
        return run


def _the_one_with_a_demo() -> Spec:
    """Of several the one that says it comes first. Raises `UserError` naming them where none or more do."""
    found = [spec for spec in specs.installed().values() if isinstance(spec, Spec) and spec.demo is not None]
    first = [spec for spec in found if spec.demo_first] if len(found) > 1 else found
    if len(first) == 1:
        return first[0]
    if not found:
        raise UserError("No installed project has a demo; train a config of your own with `cockpit train`.")
    raise UserError(
        f"Several projects have a demo; choose one: {' or '.join(f'`cockpit demo {s.name}`' for s in found)}."
    )


def _config_file(name: str) -> Path:
    """A config that comes with the program: beside its packages, or in `./configs`."""
    places = (Path("configs"), SHIPPED)
    for folder in places:
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"The demo config {name} is neither in {places[0].absolute()} nor in {places[1]}.", exit_code=1)
