"""Words that were replaced do not come back in what users read: strings of the programs, README and docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding

from cockpit.app import CockpitApp
from cockpit.keys import catalogue
from cockpit.screens.launch_form import LaunchFormScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen

ROOT = Path(__file__).resolve().parents[2]
EXPRESSIONS = (r"\w", r"\d", r"\b", "(?:")
"""In a regular expression, which may read what other programs and older versions wrote."""
PROGRAMS = ("cockpit", "engines", "projects")
HELP = ("engines/contract/settings.py",)
"""Modules whose attribute docstrings are the help of a form's fields."""
NOT_CHECKED = (
    "docs/decisions.md",
    "docs/behaviours.md",
)
"""Reasons for developers, and what is written of the tests."""
RETIRED = {
    r"\banew\b": "again",
    r"\b(persons?|people)\b": "user",
    r"\bdearest\b": "most expensive",
    r"\b(is|are|was|were|be|been) told\b(?! apart)|\btold (once|when|elsewhere)\b": "reported",
    r"\btells?\b(?! apart)": "shows or says",
    r"\bstands? (at|in|under|beside|behind|before|after)\b": "is",
    r"\b(goes|going|went|go) on\b(?= (from|with|by|again|where|when|until|after|without|at)\b|[.,;:]|$)":
        "resumes, continues or keeps running",
    r"\b(is|no|there is|enough|has) room\b|\broom (for|is|again)\b": "space",
    r"\bbehind\b": "after",
    r"\bpassed over\b": "skipped",
    r"\bgiv(e|es|en) up\b": "cancel",
    r"\bsays? (yes|no)\b": "pred + or pred −",
    r"\bnothing is wrong\b": "OK",
    r"\bis no (number|key|name|file|metric|weight|factor|training)\b": "is not a",
    r"\bis there already\b": "already exists",
    r"\bno end yet\b": "is incomplete",
    r"\bnothing of it is left\b": "no processes left",
    r"\bleave (--\S+|it) out\b": "omit",
    r"\bof a program that is not the cockpit's\b": "external",
    r"\b(steps|batches|samples?|loss|weight|key|seconds|s|m) an? (step|epoch|head|hour|batch)\b": "per",
    r"\bforeign\b": "external",
}  # fmt: skip


def strings(source: str, *, help: bool = False) -> Iterator[tuple[int, str]]:
    """The line and text of what users read: constants with a space in them, those of an f-string joined.

    Docstrings are left out, and so is what looks like a regular expression; with `help` attribute docstrings count.
    """
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            kept = body[1:] if help and isinstance(node, ast.ClassDef) else []
            skipped |= {id(it.value) for it in body if isinstance(it, ast.Expr) and it not in kept}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Constant)}
            yield node.lineno, "".join(str(it.value) if isinstance(it, ast.Constant) else "{}" for it in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside code blocks, without code spans and addresses of links."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", " ", line)


def faults(where: str, texts: Iterator[tuple[int, str]]) -> list[str]:
    """`file:line: "word" is now: better word`, for every retired word."""
    found = []
    for line, text in texts:
        if " " in text.strip() and not any(mark in text for mark in EXPRESSIONS):
            for pattern, better in RETIRED.items():
                if hit := re.search(pattern, text):
                    found.append(f"{where}:{line}: {hit[0]!r} is now: {better}")
    return found


@pytest.mark.behaviour("words-of-the-field")
def test_no_program_says_a_retired_word() -> None:
    paths = [path for program in PROGRAMS for path in sorted((ROOT / program).rglob("*.py"))]
    assert len(paths) > 200
    found = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        found += faults(name, strings(path.read_text(encoding="utf-8"), help=name in HELP))
    assert not found, "\n".join(found)


@pytest.mark.behaviour("words-of-the-field")
def test_no_page_says_a_retired_word() -> None:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert len(paths) > 10
    names = {str(path.relative_to(ROOT)): path for path in paths}
    found = [
        fault
        for name, path in names.items() if name not in NOT_CHECKED
        for fault in faults(name, prose(path.read_text(encoding="utf-8")))
    ]  # fmt: skip
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "better"),
    [
        ('say("start it anew")', "again"),
        ('say(f"{run} goes on from step {step}")', "resumes, continues or keeps running"),
        ('say(f"{seconds} s a step")', "per"),
        ('Binding("o", "order", "the dearest first")', "most expensive"),
        ('raise UserError(f"{text} is no number; expected one")', "is not a"),
    ],
)
def test_a_retired_word_is_found_with_its_line_and_the_better_word(source: str, better: str) -> None:
    (fault,) = faults("x.py", strings(f"import a\n{source}\n"))
    assert fault.startswith("x.py:2: ")
    assert fault.endswith(f": {better}")


def test_docstrings_and_code_are_not_what_users_read() -> None:
    source = '"""Made anew."""\n\ndef f():\n    """A person."""\n    return {"anew": told}\n'
    assert faults("x.py", strings(source)) == []
    assert faults("x.md", prose("Use `room is anew`.\n```\nanew here\n```\n")) == []
    assert faults("x.py", strings('class A:\n    """A."""\n    b: int\n    """Start anew."""\n', help=True)) != []


@pytest.fixture(scope="module")
def said() -> str:
    """All that the programs and pages say, a line each."""
    sources = [path.read_text(encoding="utf-8") for name in PROGRAMS for path in sorted((ROOT / name).rglob("*.py"))]
    pages = [(ROOT / "README.md").read_text(encoding="utf-8")]
    return "\n".join([text for source in sources for _, text in strings(source)] + pages)


@pytest.mark.behaviour("words-of-the-field")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("leave, and start again with", "makes data, trains a model: 3 min"),
        ("157,085 trained", "all trainable"),
        ("the dearest first", "most expensive first"),
        ("Begin a run of its own", "Start a new run from a checkpoint"),
        ("nothing of it is left running", "no processes left"),
        ("saved, resume goes on from here", "r resumes"),
        ("the schedule is stretched to it", "to fit."),
        ("95 % of best", "best, 95 % CI"),
        ("says yes", "nearly best"),
        ("in all action F1", "overall: "),
        ("has no end yet", "waiting for the rest."),
        ("runs were given; expected 2 to 8", "compare needs two"),
        ("four times in five", "more epochs: best"),
        ("they cost", "(80 %)"),
        ("By less", "Finer step down"),
        ("Do with the changes what is said", "Apply or discard the changes, then close"),
        ("What goes wrong is told", "## Alerts"),
        ("A run from a form", "## Start a run"),
    ],
)
def test_phrases_that_read_badly_were_replaced(said: str, old: str, new: str) -> None:
    assert old not in said
    assert new in said


@pytest.mark.behaviour("words-of-the-field")
def test_keys_have_the_words_of_the_field() -> None:
    bound = {binding.id: binding.description for cls in (CockpitApp, RunScreen, LaunchFormScreen, RunsScreen)
             for binding in Binding.make_bindings(vars(cls)["BINDINGS"])}  # fmt: skip
    words = {"cockpit.palette": "commands", "cockpit.leave": "quit", "run.rate": "lr & stop",
             "run.checkpoint": "checkpoint", "launch.start": "start", "launch.give-up": "cancel"}  # fmt: skip
    assert {id: bound[id] for id in words} == words


@pytest.mark.behaviour("one-key-one-meaning")
@pytest.mark.parametrize(("key", "meaning"), [("x", {"cancel"}), ("L", {"lock"}), ("d", {"delete", "discard"})])
def test_a_key_has_one_meaning_on_every_screen(key: str, meaning: set[str]) -> None:
    found = {one.id.partition(".")[2]: one.about.lower() for one in catalogue(CockpitApp) if key in one.keys}
    assert found
    unlike = {id: about for id, about in found.items() if not any(word in f"{id} {about}" for word in meaning)}
    assert not unlike
