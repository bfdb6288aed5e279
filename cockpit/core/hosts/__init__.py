"""Runs of other machines over ssh: `follower` runs there, `link` connects to it, `mirror` keeps its files here."""
