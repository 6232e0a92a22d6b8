"""Ruby, in which programs are written that know a protocol and not our code."""

import shutil
import subprocess

import pytest

RUBY = [shutil.which("ruby") or "ruby", "-EUTF-8:UTF-8"]


def lacking() -> bool:
    if not shutil.which("ruby"):
        return True
    return subprocess.run([*RUBY, "-rredis", "-e", ""], check=False).returncode != 0


needs_ruby = pytest.mark.skipif(lacking(), reason="needs Ruby and its redis: ruby, ruby-redis")
