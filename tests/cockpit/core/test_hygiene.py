import subprocess
import sys

MODULES = """
import pkgutil, sys, importlib
import cockpit.core
for module in pkgutil.iter_modules(cockpit.core.__path__):
    importlib.import_module("cockpit.core." + module.name)
print([name for name in ("textual", "torch", "pydantic", "engines.training", "projects") if name in sys.modules])
"""
APP = """
import sys
import cockpit.app
print([name for name in ("torch", "pydantic", "engines.training", "projects") if name in sys.modules])
"""


def loaded(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_the_core_loads_no_screens_and_no_torch() -> None:
    assert loaded(MODULES) == "[]"


def test_the_app_loads_no_torch_and_no_config_models() -> None:
    assert loaded(APP) == "[]"
