"""The cockpit in a browser: a server that asks for a token, and a process of its own for each page that is open."""
