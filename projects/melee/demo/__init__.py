"""A small platform fighter, whose games are stored as those of replays are: demo data of every field."""
