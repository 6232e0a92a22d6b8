"""Free ports, for processes that bind theirs later."""

import random
import socket
from contextlib import ExitStack, suppress

# Below the kernel's ephemeral ports: an outgoing connection could take one of those meanwhile.
LOWEST, HIGHEST = 10_000, 32_000


def free_ports(number: int = 1) -> int:
    """The first of `number` consecutive ports that are free on the loopback address."""
    while True:
        first = random.SystemRandom().randrange(LOWEST, HIGHEST)
        with suppress(OSError), ExitStack() as held:
            for port in range(first, first + number):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
