"""YAML by the number rules of 1.2, written so that it reads back unchanged, refused with its line."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.basics import yaml12

text = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)


@pytest.mark.behaviour("5e-4-1e5-5e")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5e-4", 5e-4), ("1e5", 1e5), ("5E-4", 5e-4), ("1.0e5", 1e5), ("+.5", 0.5), ("-2.", -2.0), (".inf", math.inf),
        ("-.INF", -math.inf), ("7", 7), ("-7", -7), ("010", 10), ("0o17", 15), ("0x1F", 31),
        ("true", True), ("FALSE", False), ("~", None), ("null", None), ("", None),
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("12:30", "12:30"), ("1_000", "1_000"), ("nan", "nan"),
        ("2026-11-27", "2026-11-27"), ("e5", "e5"), ("1e", "1e"), ("-", None), ("<<", "<<"), ("=", "="),
        ('"5e-4"', "5e-4"),
    ],
)  # fmt: skip
def test_scalars_are_read_by_the_rules_of_yaml_1_2(written: str, value: Any) -> None:
    if written == "-":
        value = [None]  # an empty item of a list
    read, _ = yaml12.read(written)
    assert read == value
    assert type(read) is type(value)


def test_nan_is_read_where_yaml_says_so() -> None:
    value, _ = yaml12.read(".nan")
    assert math.isnan(value)


@pytest.mark.behaviour("5e-4-1e5-5e")
@given(trees)
def test_what_is_written_reads_back_equal(tree: Any) -> None:
    read, _ = yaml12.read(yaml12.write(tree))
    assert read == tree
    assert repr(read) == repr(tree)  # True is not 1, and -0.0 is not 0.0


def test_every_key_knows_its_line() -> None:
    _, lines = yaml12.read("a: 1\nb:\n  c: 2\n\n  # a comment\n  d:\n    - x\n    - e: 3\n")
    assert lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d"): 6,
        ("b", "d", 0): 7,
        ("b", "d", 1): 8,
        ("b", "d", 1, "e"): 8,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "3: a is given twice, first on line 1"),
        ("x:\n  a: 1\n  a: 2\n", "3: x.a is given twice, first on line 2"),
        ("a: 1\nb: [1, 2\n", "3: "),
        ("a: 1\n\tb: 2\n", "2: "),
        ("a: !!python/object/apply:os.system [true]\n", "1: "),
        ("a: &a [*a]\n", "1: aliases (*a) are not supported"),
        ("a: 1\n--- \nb: 2\n", "2: "),
        ("b: 1\na: \x07\n", "2: the character '\\x07' is not allowed in YAML"),
        ("a: !!bool maybe\n", "1: "),
        ("a: !!timestamp tomorrow\n", "1: "),
        ("a: !!int ten\n", "1: "),
        ("[" * 1200, "1: nested too deeply"),
        ("1" * 5000, "1: not valid YAML"),
    ],
    ids=range(13),
)
def test_a_bad_document_is_refused_with_its_line(document: str, message: str) -> None:
    with pytest.raises(yaml12.YamlError) as caught:
        yaml12.read(document)
    assert str(caught.value).startswith(message)


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@,? \n\t0.e~"), max_size=30))
def test_any_text_is_read_or_refused(document: str) -> None:
    try:
        yaml12.read(document)
    except yaml12.YamlError as error:
        line, _, _ = str(error).partition(":")
        assert 1 <= int(line) <= document.count("\n") + 2


def test_aliases_are_refused_before_they_multiply() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    with pytest.raises(yaml12.YamlError, match=r"^2: aliases \(\*a0\) are not supported"):
        yaml12.read(bomb)


def test_a_value_used_twice_is_written_out_twice() -> None:
    shared = [1, 2]
    assert yaml12.read(yaml12.write({"a": shared, "b": shared}))[0] == {"a": [1, 2], "b": [1, 2]}


@given(trees)
def test_a_value_on_one_line_reads_back_unchanged(value: Any) -> None:
    line = yaml12.write_line(value)
    assert "\n" not in line
    assert repr(yaml12.read_value(line)) == repr(value)


def test_what_is_no_yaml_is_a_string_as_it_stands() -> None:
    assert yaml12.read_value("[a, b") == "[a, b"
    assert yaml12.read_value("5e-4") == 5e-4


@pytest.mark.parametrize(("text", "found"), [
    ("cost: {budget_usd: 4}", 4), ("cost: {budget_usd: null}", None), ("cost: 7", None), ("cost:", None), ("[1]", None),
    ("", None), ("cost: {budget_usd: {deep: 1}}", {"deep": 1}),
])  # fmt: skip
def test_a_key_is_found_or_nothing_whatever_stands_on_the_way(text: str, found: object) -> None:
    assert yaml12.find(yaml12.read(text)[0], "cost", "budget_usd") == found
