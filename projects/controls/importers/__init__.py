"""Logs and recordings from elsewhere become recordings; `kinds` is the table of what is understood."""
