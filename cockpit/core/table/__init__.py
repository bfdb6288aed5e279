"""The epoch table as text: its columns, its rows, and with which weights its losses were computed."""
