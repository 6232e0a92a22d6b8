"""A newer release, whose processes are started on a world's servers."""

import os

from lab import newer
from tests.support.forks import Process
from tests.support.world import THE_FLEETS, Service, World


class Release(newer.Release):
    """In a folder."""

    def service(self, world: World, module: str, *arguments: str, **environment: str) -> Service:
        """Start `python -m module` of it on a world's servers."""
        output = world.new_output(module)
        given = os.environ | THE_FLEETS | world.settings | environment
        process = Process(module, arguments, given, output, folder=self.folder)
        return world.started(Service(process, output))

    def migrate(self, world: World) -> str:
        """Run its migrations to their end, which must be a good one; returns what they say."""
        migration = self.service(world, "migrations")
        assert migration.ends() == 0, migration.output.read_text()
        return migration.output.read_text()
