"""Configs: those that can be started, as a form, as text, and what differs between them."""
