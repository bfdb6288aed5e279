"""This machine: its name, its meters, the queue of its devices, where a user's choices are kept."""
