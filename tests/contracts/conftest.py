import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
for folder in (TESTS, TESTS / "ops", TESTS / "contracts"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
