"""`python -m jato`: the command line of tools/command_line.py."""

import sys

from jato.tools.command_line import main

if __name__ == "__main__":
    sys.exit(main())
