"""YAML with the scalar rules of YAML 1.2 and the line of every key.

PyYAML follows YAML 1.1, where `5e-4` is a string, `no` a boolean, `12:30` the number 750 and `010` the number 8.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

Key = tuple[str | int, ...]
"""Where a value stands: ("training", "stages", 0, "name")."""

_RULES: tuple[tuple[str, str, str], ...] = (
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+.0123456789",
    ),
)


class YamlError(ValueError):
    """Text that is not the YAML expected; the message has the line in front."""


class _Loader(yaml.SafeLoader):
    """Safe construction with the scalar rules of YAML 1.2, without aliases: a few lines of them can mean gigabytes."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise YamlError(
                f"{event.start_mark.line + 1}: aliases (*{event.anchor}) are not supported: write the value out"
            )
        return super().compose_node(parent, index)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        text = str(self.construct_scalar(node))
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text[2:] if base != 10 else text, base)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        return float(str(self.construct_scalar(node)).lower().replace(".inf", "inf").replace(".nan", "nan"))


class _Dumper(yaml.SafeDumper):
    """Quotes every string that YAML 1.1 or 1.2 would read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # rare line breaks come back as spaces from any style that does not escape them
        style = '"' if any(c in text for c in "\r\x85\u2028\u2029") else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


class _LineDumper(_Dumper):
    """Escapes line breaks, which other styles would write as such."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        if "\n" in text:
            return self.represent_scalar("tag:yaml.org,2002:str", text, '"')
        return super().represent_text(text)


for _tag, _pattern, _first in _RULES:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_tag, re.compile(_pattern), [c if c != "\0" else "" for c in _first])
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Dumper.add_representer(str, _Dumper.represent_text)
_LineDumper.add_representer(str, _LineDumper.represent_text)


def _collect(node: yaml.Node, at: Key, lines: dict[Key, int]) -> None:
    """Note the line of each key and item, and refuse keys given twice (YAML would keep the last one silently)."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            key = (*at, str(key_node.value))
            line = key_node.start_mark.line + 1
            if key in lines:
                raise YamlError(f"{line}: {'.'.join(map(str, key))} is given twice, first on line {lines[key]}")
            lines[key] = line
            _collect(value, key, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*at, index)] = value.start_mark.line + 1
            _collect(value, (*at, index), lines)


def read(text: str) -> tuple[Any, dict[Key, int]]:
    """The value of a YAML document and the line (from 1) of every key in it. Raises `YamlError`."""
    lines: dict[Key, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _collect(node, (), lines)
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YamlError(f"{line}: {error.problem or 'not valid YAML'}") from None
    except YamlError:
        raise
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"{line}: the character {chr(error.character)!r} is not allowed in YAML") from None
    except RecursionError:
        raise YamlError("1: nested too deeply") from None
    except (yaml.YAMLError, ValueError, KeyError, AttributeError) as error:
        # the last two are PyYAML's own answers to `!!bool maybe` and `!!timestamp tomorrow`
        raise YamlError(f"1: not valid YAML ({error})") from None


def find(tree: Any, *keys: str) -> Any:
    """What stands at `keys` in what was read; None where nothing does, whatever stands on the way."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def amount(tree: Any, *keys: str) -> float:
    """The number at `keys` in what was read; 0 where there is none."""
    value = find(tree, *keys)
    return float(value) if isinstance(value, int | float) else 0.0


def write(value: Any) -> str:
    """`value` as YAML that `read` gives back unchanged."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def read_value(text: str) -> Any:
    """The one value that `text` says, as after a `key:` in a file; what is no YAML is a string as it stands."""
    try:
        return read(text)[0]
    except YamlError:
        return text


def write_line(value: Any) -> str:
    """`value` as YAML on one line, which `read_value` gives back unchanged."""
    text: str = yaml.dump(
        value, Dumper=_LineDumper, sort_keys=False, allow_unicode=True, default_flow_style=True, width=math.inf
    )
    return text.removesuffix("\n").removesuffix("\n...")
