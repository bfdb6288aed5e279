"""Changing one value in the text of a YAML file, with every comment and everything else left as it is."""

from __future__ import annotations

from typing import Any

import yaml

from engines.basics import yaml12

Path = tuple[str, ...]
INDENT = "  "


def with_value(text: str, path: Path, value: Any) -> str:
    """`text` with `value` at `path`, in place of what stands there or as a new line of its section.

    Knows block and flow mappings, as people write configs. Read the result and compare: a text of another shape
    (a section given as a block of text, say) may come out wrong. Raises `ValueError` for a text that is no YAML.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if not isinstance(root, yaml.MappingNode):
        return _appended(text, len(text), "", path, value)
    section, depth = root, 0
    while True:
        node = _child(section, path[depth])
        depth += 1
        if node is None:
            return _inserted(text, section, path[depth - 1 :], value)
        if depth == len(path):
            return _replaced(text, node, value)
        if not isinstance(node, yaml.MappingNode):
            return _replaced(text, node, _nested(path[depth:], value))
        section = node


def _child(section: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in section.value if key.value == name), None)


def _nested(path: Path, value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _replaced(text: str, node: yaml.Node, value: Any) -> str:
    start, end = node.start_mark.index, _end(node)
    if _is_block(node) and isinstance(value, dict | list) and value:
        return text[:start] + _indented(yaml12.write(value), " " * node.start_mark.column).strip() + text[end:]
    gap = " " if start == end and text[start - 1 : start] == ":" else ""
    return text[:start] + gap + yaml12.write_line(value) + text[end:]


def _inserted(text: str, section: yaml.MappingNode, path: Path, value: Any) -> str:
    """A new key at the end of its section."""
    if section.flow_style:
        inner = yaml12.write_line(_nested(path, value))[1:-1]
        at = section.end_mark.index - 1
        return text[:at].rstrip() + (", " if section.value else "") + inner + text[at:]
    return _appended(text, _end(section), " " * section.start_mark.column, path, value)


def _appended(text: str, after: int, indent: str, path: Path, value: Any) -> str:
    """New lines after the line in which the position `after` is, that line's comment included."""
    newline = text.find("\n", after)
    head, tail = (text[: newline + 1], text[newline + 1 :]) if newline >= 0 else (text + "\n" * bool(text), "")
    space = "\n" if not indent and isinstance(_nested(path, value)[path[0]], dict) and head else ""
    return head + space + _indented(yaml12.write(_nested(path, value)), indent) + tail


def _indented(text: str, indent: str) -> str:
    return "".join(indent + line for line in text.splitlines(keepends=True))


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _end(node: yaml.Node) -> int:
    """Where the last character of a node is; the parser's own end of a block lies beyond the comments after it."""
    if not _is_block(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return max(_end(part) for part in last) if isinstance(last, tuple) else _end(last)
