"""The command ``idlewise``."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig

from . import _native


def main() -> int:
    """Run the command with the arguments of this process.

    It starts itself once more for some things, such as the guard of ``idlewise run``: as the script that this package installs.
    """
    # As in any other program: Python would only take a note.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) == "__main__.py":
        script = os.path.join(sysconfig.get_path("scripts"), "idlewise")
    # For what the command leaves to this package.
    os.environ.setdefault("IDLEWISE_PYTHON", sys.executable)
    return _native.run_command(script, ["idlewise", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
