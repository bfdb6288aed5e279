"""What is trained. Imports engines, never cockpit."""
