"""A paste gives one text and no key, however the terminal cuts it into pieces."""

from __future__ import annotations

import pytest
from textual import events
from textual.message import Message

from cockpit.pasted import PasteParser

START, END = "\x1b[200~", "\x1b[201~"


def told(*pieces: str) -> list[tuple[str, str]]:
    """What `pieces` give: ("key", its name) or ("paste", its text)."""
    parser = PasteParser()
    messages: list[Message] = [message for piece in pieces for message in parser.feed(piece)]
    return [
        ("key", message.key) if isinstance(message, events.Key) else ("paste", message.text)
        for message in messages
        if isinstance(message, events.Key | events.Paste)
    ]


@pytest.mark.behaviour("pasted-text-whatever-escapes")
@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("\x1b[31mred", "red"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("one\rtwo\x1b[A", "one\rtwo"),
        ("a lone \x1b", "a lone "),
        ("\x1b]0;title\x07words \x1b[200~again", "words again"),
        ("\x1b[" + "0;" * 40 + "mlong", "long"),
    ],
    ids=repr,
)
def test_a_paste_is_its_words_alone(pasted: str, text: str) -> None:
    whole = f"s{START}{pasted}{END}p"
    expected = [("key", "s"), ("paste", text), ("key", "p")]
    assert told(whole) == expected
    assert told(*whole) == expected
    for cut in range(1, len(whole)):
        assert told(whole[:cut], whole[cut:]) == expected


def test_keys_outside_of_a_paste_are_as_ever() -> None:
    assert told(f"\x1b[A{START}x{END}\x1b[B", f"{START}y{END}\r") == [
        ("key", "up"),
        ("paste", "x"),
        ("key", "down"),
        ("paste", "y"),
        ("key", "enter"),
    ]
