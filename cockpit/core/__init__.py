"""What the app and the command line stand on: Textual-free, torch-free."""
