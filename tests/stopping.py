"""A run that is interrupted at a sample."""

from simulator.command.options import Progress


class StopsAt(Progress):
    """Is interrupted when so many samples are through, those of all rounds and stacks."""

    def __init__(self, count):
        self.count = count

    def advance(self, done, total):
        if done == self.count:
            raise KeyboardInterrupt
