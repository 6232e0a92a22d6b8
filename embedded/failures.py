"""How an embedded server can fail to start or to stop: for this time, by itself, or for good."""


class ServerFailed(Exception):
    """An embedded server could not be started or stopped; the message says why."""


class RefusedToStart(ServerFailed):
    """A server ended by itself before it served; the message is its own reason."""


class NeverStarts(ServerFailed):
    """It never will, unless a person changes something; the message says what."""
