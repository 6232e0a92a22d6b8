"""A Procfile's processes, which honcho runs and which end with it, and how their lines look."""

import logging
import multiprocessing
import os
import signal
import threading
from functools import partial
from multiprocessing import Queue

from honcho.manager import Manager
from honcho.printer import Message, Printer
from honcho.process import Popen, Process

from rocket_rides import logs
from rocket_rides.parent_death import die_with_parent, preexec_die_with_parent


class Lines(Printer):  # type: ignore[misc]
    """honcho's printer, which ends the fleet when its lines can't be written any more.

    As in `| head`, when the terminal is gone, or when the disk is full.
    """

    def write(self, message: Message) -> None:
        """Print the lines of one message."""
        try:
            self.show(message)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.output.fileno())
            os.kill(os.getpid(), signal.SIGTERM)

    def show(self, message: Message) -> None:
        super().write(message)


class Objects(Lines):
    """For LOG_FORMAT=json: every line becomes an object, whoever wrote it."""

    def show(self, message: Message) -> None:
        """Pass on an object as it is, and make one of any other line."""
        data = (
            message.data.decode(errors="replace")
            if isinstance(message.data, bytes)
            else message.data
        )
        for line in data.splitlines():
            if not line.startswith('{"'):
                line = logs.objects(message.name).format(logs.written(line, "honcho", logging.INFO))
            print(line, file=self.output, flush=True)


class Lasting(Process):  # type: ignore[misc]
    """A process that lasts no longer than honcho does, however that ends (on Linux).

    honcho starts each through a fork, in a session of its own. So neither SIGKILL nor a closed
    terminal, which end honcho, reaches it: the kernel kills the fork, and sends it SIGTERM.
    """

    def run(self, events: "Queue[Message] | None" = None, ignore_signals: bool = False) -> None:
        """Be the fork."""
        die_with_parent()
        self._child_ctor = partial(Popen, preexec_fn=preexec_die_with_parent(signal.SIGTERM))
        super().run(events, ignore_signals)


class Fleet(Manager):  # type: ignore[misc]
    """honcho's manager, which can be stopped while it starts.

    By itself it would end in a traceback then, and leave processes behind: it can't signal those of
    which it has not heard yet.
    """

    def __init__(self, printer: Printer) -> None:
        super().__init__(printer)
        self._process_ctor = Lasting
        self._ended = ""  # which process did, by itself

    def loop(self) -> None:
        """Run them until one ends, which ends all; say at last which that was."""
        super().loop()
        if self._ended:
            self._system_print(f"{self._ended}; started again, the fleet goes on where it was\n")

    def terminate(self) -> None:
        """Have all processes end, once all have started."""
        if self._all_started():
            for name, process in self._processes.items():
                if not self._terminating and process.get("returncode", 1) <= 0:
                    how = "was killed" if process["returncode"] else "ended"
                    self._ended = f"{name} {how}, and all others with it"
            super().terminate()
        elif not multiprocessing.parent_process():  # else this is a fork, which starts one of them
            threading.Timer(0.05, self.terminate).start()
