"""The torch-free contract between engines and the cockpit: run directory, events, commands, config, specs."""
