"""In which order commands are tried: a visit is what one person does in one fresh copy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lab.entries.exceptions import FLEET, LASTS, NEEDS_FLEET, why_not
from lab.entries.pages import Command


@dataclass(frozen=True)
class Visit:
    name: str
    commands: list[Command]

    @property
    def has_fleet(self) -> bool:
        return any(re.search(FLEET, command.text) for command in self.commands)


def visits(found: dict[str, list[Command]]) -> Iterator[Visit]:
    """Every command at least once: each target of the Makefile from nothing, then each page.

    What a sentence names is not tried again where another page has it, nor what a target did from
    nothing, unless a fleet is needed.
    """
    found = {page: [as_typed(command) for command in commands] for page, commands in found.items()}
    from_nothing: dict[str, list[Command]] = {}
    for command in found["Makefile"]:
        if not re.search(f"{NEEDS_FLEET}|{LASTS}", command.text):
            from_nothing.setdefault(command.text.split()[1], []).append(command)
    first = from_nothing.pop("setup") + found.pop("Procfile") + found.pop("programs")
    yield Visit("Procfile", first)
    for target, commands in from_nothing.items():
        yield Visit(f"make {target}", commands)
    seen = {command.text for commands in from_nothing.values() for command in commands}
    seen |= {command.text for command in first}
    for page, commands in found.items():
        mine = []
        for command in commands:
            needs = re.search(f"{NEEDS_FLEET}|{LASTS}", command.text)
            again = command.in_sentence or page == "Makefile" or not needs
            if command.text == "^C" or not (again and command.text in seen):
                mine.append(command)
        seen |= {command.text for command in mine}
        if any(command.text != "^C" and not command.saved for command in mine):
            yield Visit(page, beside_fleet(interrupted(mine) if page == "Makefile" else mine))


def as_typed(command: Command) -> Command:
    """A program that a sentence names is asked for its options."""
    if command.in_sentence and (program := re.match(r"python -m [\w.]+", command.text)):
        return replace(command, text=f"{program[0]} --help")
    return command


def interrupted(commands: list[Command]) -> list[Command]:
    """With a Ctrl-C after each that lasts."""
    return [
        each
        for command in commands
        for each in (command, replace(command, text="^C"))
        if each is command or re.search(LASTS, command.text)
    ]


def beside_fleet(commands: list[Command]) -> list[Command]:
    """With `make fleet` before the first that needs it, where the page doesn't say so itself."""
    for place, command in enumerate(commands):
        if re.search(FLEET, command.text):
            break
        if re.search(NEEDS_FLEET, command.text) and not why_not(command.text, lambda _: True):
            return [*commands[:place], Command("make fleet", command.page, 0), *commands[place:]]
    return commands
