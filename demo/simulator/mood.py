"""The customer's bad mood, for whoever wants to see receipts refused."""

import signal

# The signal after which the simulator refuses all receipts, and for how many seconds.
BEGIN_BAD_MOOD, BAD_MOOD = signal.SIGUSR1, 5.0
