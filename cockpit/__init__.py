"""The terminal app and the `cockpit` command. Never imports torch."""

__version__ = "0.1.0"
