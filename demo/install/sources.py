"""Where pip gets packages from, for uv, which does not read pip's configuration."""

import ast
import os
import re
import subprocess
from collections.abc import Sequence

# pip's options, and uv's names for them. What is missing here makes uv fail, and pip goes on.
AS_UV_CALLS_IT = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
IN_COMMAS = {"UV_FIND_LINKS"}
# Later sections override earlier ones; the last has the variables PIP_*.
SECTIONS = ("global", "install", ":env:")


def sources(pip: Sequence[str]) -> dict[str, str]:
    """What pip is configured for, as variables for uv, except those that are already set."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True)
    return {
        name: value for name, value in translated(listed.stdout).items() if name not in os.environ
    }


def translated(pips_configuration: str) -> dict[str, str]:
    """The output of `pip config list`, as variables for uv."""
    # pip takes the best match of all sources; uv by default takes the first source's.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    settings = re.findall(r"^([\w:]+)\.([\w-]+)=(.*)$", pips_configuration, re.MULTILINE)
    for wanted in SECTIONS:
        for section, option, value in settings:
            if section == wanted and option in AS_UV_CALLS_IT:
                name = AS_UV_CALLS_IT[option]
                words = str(ast.literal_eval(value)).split()
                variables[name] = ("," if name in IN_COMMAS else " ").join(words)
    return variables
