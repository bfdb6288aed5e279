"""Where models are opened: what is wrong with one is said in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engines.basics.errors import UserError
from projects.sim.labels import ModelError


@contextmanager
def said_of_models() -> Iterator[None]:
    """Raises `UserError` for what is wrong with a model, or where its packages are missing."""
    try:
        yield
    except ModelError as error:
        said = str(error)
        named = said.startswith("model.")  # a setting keeps its name
        raise UserError(said if named else f"{said[:1].upper()}{said[1:]}") from None
    except ModuleNotFoundError as error:
        raise UserError(f"SIM needs the package {error.name}; start with COCKPIT_EXTRAS=sim ./run.") from None
