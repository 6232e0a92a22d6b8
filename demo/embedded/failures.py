"""How an embedded server can fail: for a while, by exiting on its own, or for good."""


class ServerFailed(Exception):
    """An embedded server could not be started or stopped; the message says why."""


class RefusedToStart(ServerFailed):
    """A server exited by itself, with an error; the message is its own reason."""


class NeverStarts(ServerFailed):
    """It will never start unless somebody changes something; the message says what."""
