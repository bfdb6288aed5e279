"""One run as a screen knows it: followed, in words, and what a person can do to it."""
