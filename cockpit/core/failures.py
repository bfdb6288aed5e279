"""Work for a thread of its own, whose failure is a sentence for a person and no traceback."""

from __future__ import annotations

from collections.abc import Callable

from engines.basics.errors import UserError


def sentence(error: UserError | OSError) -> str:
    """What went wrong, for a person: the system's own errors without their numbers."""
    if isinstance(error, UserError):
        return str(error)
    return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."


def told(work: Callable[[], object], tell: Callable[[str], object]) -> Callable[[], None]:
    """`work`, with what a person can mend, a `UserError` or an OSError, given to `tell` in the same thread."""

    def guarded() -> None:
        try:
            work()
        except (UserError, OSError) as error:
            tell(sentence(error))

    return guarded
