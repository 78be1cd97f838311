"""Stand-ins for packages that the clients' tests import, and that nothing of what runs here needs."""

import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock


class _Finder:
    def __init__(self, *packages):
        self._packages = packages

    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(f"{each}.") for each in self._packages):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def stand_in(*packages):
    """Let these packages be importable: whatever is asked of them is there, and does nothing."""
    sys.meta_path.insert(0, _Finder(*packages))
