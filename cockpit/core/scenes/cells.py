"""Rows of cells: characters with what they are, from which a widget takes their colours."""

Cell = tuple[str, str]
"""A character and what it is: a kind of `engines.contract.scenes`, or `rgb:upper:lower` for two pixels of an image."""
Row = list[Cell]
BLANK: Cell = (" ", "plain")
