"""A newer release, whose processes are started on a world's servers."""

import os
import sys

from lab import newer
from lab.processes import start
from tests.support.world import THE_FLEETS, Service, World


class Release(newer.Release):
    """In a folder."""

    def service(self, world: World, module: str, *arguments: str, **environment: str) -> Service:
        """Start `python -m module` of it on a world's servers."""
        path = world.new_output(module)
        given = os.environ | THE_FLEETS | world.settings | environment
        with path.open("wb") as output:
            command = [sys.executable, "-m", module, *arguments]
            return world.started(Service(start(command, given, output, self.folder), path))

    def migrate(self, world: World) -> str:
        """Run its migrations to their end, which must be a good one; returns what they say."""
        migration = self.service(world, "migrations")
        assert migration.ends() == 0, migration.output.read_text()
        return migration.output.read_text()
