"""The commands that the project tells a person to type, read from where it says so."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# In a sentence, only what begins like this is a command; in a block of shell, every line is.
COMMAND = re.compile(
    r"([A-Z_]+=\S+ )*(make|curl|python -m|honcho|docker compose|git|redis-cli|echo|\./?\w+/\S+) +\S"
    r"|\.ci/run$"
)
BESIDE = ("CONTRIBUTING.md", "SECURITY.md", "cells/README.md", "deploy/README.md")
SHELL = {"sh", "bash", "shell", "console"}
FENCE = re.compile(r"^```(\w*)$")
CODE = re.compile(r"`([^`]+)`")
COMMENT = re.compile(r"(?:^|\s)#\s.*$")
ARGUMENTS = re.compile(r"""ARGS=(?:"[^"]+"|'[^']+'|--\w[\w-]*|[\w-]+)""")
# Lines that ask for something else than a command.
INTERRUPT = re.compile(r"^Ctrl-C\b", re.M)
SAVE = re.compile(r"Save the example of \[[^]]*\]\(([^)]+)\) as `([^`]+)`")

# As on servers of one's own; here they are those that another honcho runs.
URL = '"$(.venv/bin/python -c "from rocket_rides.settings import load; print(load().{})")"'
ON_URLS = (
    f"DATABASE_URL={URL.format('postgres_url')} REDIS_URL={URL.format('log_url')}"
    " .venv/bin/honcho start api streamer consumer0"
)


@dataclass(frozen=True)
class Command:
    """What a page tells a person to type; `text` is ^C for Ctrl-C."""

    text: str
    page: str
    line: int
    in_sentence: bool = False
    saved: tuple[str, str] | None = None  # instead of typing: the page with the file, and its name

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def everything(project: Path) -> dict[str, list[Command]]:
    """All commands, by page, in the order in which the page has them."""
    pages = [project / name for name in ("README.md", *BESIDE)]
    pages += sorted(project.glob("docs/*.md"), key=lambda page: (page.stem != "first-hour", page))
    read = [markdown(page.read_text(), page, project) for page in pages]
    found = dict(zip((page.relative_to(project).as_posix() for page in pages), read, strict=True))
    for name in ("docker-compose.yml", ".env.example"):
        found[name] = list(comments((project / name).read_text(), name))
    found["Makefile"] = list(targets(project))
    found["Procfile"] = list(processes((project / "Procfile").read_text()))
    found["programs"] = list(programs(project))
    return found


def markdown(text: str, page: Path, project: Path) -> list[Command]:
    """A page's commands: lines of its blocks of shell, and code in its sentences."""
    name, found = page.relative_to(project).as_posix(), []
    sentences, block, begun = "", None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line.strip())
        sentences += "\n" if fence or block is not None else f"{line}\n"
        if fence:
            block, begun = (fence[1] if block is None else None), ""
        elif block == "console" and not line.startswith("$ "):
            continue  # what it prints
        elif block in SHELL or (block in ("", "text") and COMMAND.match(line)):
            typed = COMMENT.sub("", line.removeprefix("$ ")).rstrip()
            begun = f"{begun}\n{typed}" if begun else typed
            if begun and not typed.endswith(("\\", "|")):
                found.append(Command(begun, name, number))
                begun = ""
    found += [
        Command(" ".join(code[1].split()), name, line_of(code), in_sentence=True)
        for code in CODE.finditer(sentences)  # it may be on two lines
        if COMMAND.match(" ".join(code[1].split()))
    ]
    found += [Command("^C", name, line_of(each)) for each in INTERRUPT.finditer(sentences)]
    for save in SAVE.finditer(sentences):
        found.append(Command(save[0], name, line_of(save), saved=(save[1], save[2])))
    return sorted(found, key=lambda command: command.line)


def line_of(match: re.Match[str]) -> int:
    return match.string.count("\n", 0, match.start()) + 1


def comments(text: str, name: str) -> Iterator[Command]:
    """The commands in the comments of a file, which are indented there."""
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"^\s*#", "", line)
        is_indented = line.lstrip().startswith("#") and code.startswith("     ")
        if is_indented and COMMAND.match(code.strip()):
            yield Command(code.strip(), name, number)
    if name == "docker-compose.yml":
        yield Command("docker compose config", name, 1)


def targets(project: Path) -> Iterator[Command]:
    """What `make help` lists, each also with the arguments that are shown there."""
    shown = subprocess.check_output(["make", "-s", "help"], cwd=project, text=True)  # noqa: S607
    name = ""
    for number, line in enumerate(shown.splitlines(), 1):
        if entry := re.match(r"make ([a-z-]+)", line):
            name = entry[1]
            yield Command(f"make {name}", "Makefile", number)
        for arguments in ARGUMENTS.findall(line):
            yield Command(f"make {name} {arguments}", "Makefile", number)


def processes(procfile: str) -> Iterator[Command]:
    """The whole fleet, each of its processes beside the servers, and some on servers of a URL."""
    names = [line.partition(":")[0] for line in procfile.splitlines()]
    started = ["", " servers", *(f" servers {name}" for name in names if name != "servers")]
    typed = [text for name in started for text in (f".venv/bin/honcho start{name}", "^C")]
    typed += [".venv/bin/honcho start servers", ON_URLS, "^C", "^C"]
    for text in typed:
        yield Command(text, "Procfile", 1)


def programs(project: Path) -> Iterator[Command]:
    """`--help` of each module that is run."""
    for path in sorted(project.glob("[a-z]*/**/*.py")):
        parts = path.relative_to(project).with_suffix("").parts
        if parts[0] == "tests" and parts[1] in ("support", "services", "fast", "analytics"):
            continue
        if 'if __name__ == "__main__":' in path.read_text().splitlines():
            module = ".".join(parts).removesuffix(".__main__")
            yield Command(f"python -m {module} --help", "/".join(parts) + ".py", 1)
