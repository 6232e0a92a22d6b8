"""The customer's bad mood, for whoever wants to see receipts refused."""

import signal

# The signal after which the simulator refuses all receipts, for so many seconds, and why.
BEGIN_BAD_MOOD, BAD_MOOD, IN_A_BAD_MOOD = signal.SIGUSR1, 5.0, "in a bad mood"
