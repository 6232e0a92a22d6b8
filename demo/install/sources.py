"""Where packages come from: what pip or uv is configured for on this machine, both honour.

All their other options, such as a target folder, were meant for other projects.
"""

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

from demo.install.steps import StepFailed, without_others

# pip's options, and uv's variables for them.
SHARED = {
    "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX", "trusted-host": "UV_INSECURE_HOST", "no-cache-dir": "UV_NO_CACHE",
    "cert": "SSL_CERT_FILE", "client-cert": "SSL_CLIENT_CERT", "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT", "retries": "UV_HTTP_RETRIES",
}  # fmt: skip
# The last two choose whose certificates are trusted.
PIPS = ["cache-dir", "keyring-provider", "resume-retries", "use-feature", "use-deprecated", *SHARED]
UVS = re.compile("UV_.*(INDEX|LINKS|HOST|HTTP|TIMEOUT|CACHE|KEYRING|CREDENTIALS|CERTS|TLS|OFFLINE)")
OLD = {"default-timeout": "timeout", "UV_INDEX_URL": "UV_DEFAULT_INDEX"}
OLD["UV_EXTRA_INDEX_URL"] = "UV_INDEX"


def settings(pip: Sequence[str]) -> dict[str, str]:
    """Variables for pip and uv. Raises StepFailed if a configuration can't be read."""
    # pip takes the best match of all indexes; by default uv takes the first one's.
    pips, uvs = of_pip(pip), {"UV_INDEX_STRATEGY": "unsafe-best-match"} | of_uv()
    for option, name in SHARED.items():
        if name in uvs:  # an index may be NAME=URL
            pips.setdefault(option, re.sub(r"(?<!\S)[\w.-]+=", "", uvs[name].replace(",", " ")))
        elif option in pips and name not in os.environ:
            uvs[name] = pips[option].replace(" ", "," if option == "find-links" else " ")
    return {f"PIP_{name.upper().replace('-', '_')}": pips[name] for name in pips} | uvs


def of_pip(pip: Sequence[str]) -> dict[str, str]:
    """pip's options, from its files and, over those, from variables: words between spaces."""
    env = without_others() | {"PIP_CONFIG_FILE": os.environ.get("PIP_CONFIG_FILE", "")}
    told = subprocess.run([*pip, "config", "list", "-vvv"], env=env, capture_output=True, text=True)
    if told.returncode:
        raise StepFailed(" ".join(told.stderr.split()))
    options = re.findall(r"^(global|install)\.([\w-]+)=(.*)$", told.stdout, re.MULTILINE)
    found = {option: ast.literal_eval(value) for _, option, value in sorted(options)}
    given = {name for name in os.environ if name.startswith("PIP_")}
    found |= {name[4:].lower().replace("_", "-"): os.environ[name] for name in given}
    found = {OLD.get(name, name): " ".join(value.split()) for name, value in found.items()}
    return {option: found[option] for option in PIPS if option in found}


def of_uv() -> dict[str, str]:
    """uv's variables, from its files and variables."""
    personal = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files = os.environ.get("UV_CONFIG_FILE", f"/etc/uv/uv.toml:{personal}/uv/uv.toml").split(":")
    found: dict[str, str] = {}
    for file in filter(os.path.isfile, files):
        settings = tomllib.loads(Path(file).read_text())
        settings |= settings.pop("pip", {})
        for index in settings.pop("index", []):
            option = "default-index" if index.get("default") else "extra-index-url"
            settings.setdefault(option, []).append(index["url"])
        for option, value in settings.items():
            name = f"UV_{option.removeprefix('allow-').replace('-', '_').upper()}"
            words = value if isinstance(value, list) else [value]
            found[name] = ("," if option == "find-links" else " ").join(map(str, words))
    given = {OLD.get(name, name): value for name, value in (found | os.environ).items()}
    return {name: value for name, value in given.items() if UVS.match(name)}
