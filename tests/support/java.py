"""The Java of the tests' runs."""

import os
import shutil
from pathlib import Path

# It is over before its best compiler has warmed up, and tells other Javas nothing.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
# Looked for when this is imported, before any test's JAVA_HOME is one of these.
PLACES = f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ.get('PATH', os.defpath)}"
JAVA = shutil.which("java", path=PLACES)


def short_lived_java(folder: Path) -> dict[str, str]:
    """Settings that lead to it, with its files in `folder`; none where there is no Java.

    It is a JAVA_HOME, since a run takes no JAVA_TOOL_OPTIONS.
    """
    if JAVA is None:
        return {}
    program = folder / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{JAVA}" {SHORT_LIVED} "-Djava.io.tmpdir={folder}" "$@"\n')
    program.chmod(0o755)
    return {"JAVA_HOME": str(program.parent.parent)}
