"""An ssh that runs what it is given on this machine, in a shell as sshd does."""

from __future__ import annotations

from pathlib import Path

import pytest

SSH = """\
#!/bin/sh
while [ "$1" != "--" ]; do shift; done
case "$2" in
  nobody@*) echo "nobody@box: Permission denied (publickey)." >&2; exit 255;;
  bare) PATH=/nowhere;;
  noisy) echo "Welcome to noisy!";;
  liar) echo "cockpit follows from here"; echo '{"run": "../../x", "file": "run.json", "of": 1, "bytes": 1}'; exec cat;;
  mute) echo "cockpit follows from here"; echo '{"synced": true}'; exec sleep 60;;
esac
exec /bin/sh -c "$3"
"""


def use_near_ssh(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put it at the front of PATH, and what is kept of hosts below `folder`."""
    client = folder / "bin" / "ssh"
    client.parent.mkdir(parents=True)
    client.write_text(SSH)
    client.chmod(0o755)
    patch.setenv("PATH", str(client.parent), prepend=":")
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
