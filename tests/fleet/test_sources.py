"""Where packages come from is what pip or uv is told on this machine; all else is kept out."""

import os
import sys
from pathlib import Path

import pytest

from demo.install import sources
from tests.support.foreign import for_others, pips_options, uvs_variables

PIP = (sys.executable, "-I", "-m", "pip")
# What pip is told that says where nothing comes from. A new option fails the test: is it a source?
PIPS_OTHERS = """
abi all-releases break-system-packages build-constraint check-build-dependencies compile
config-settings constraint debug disable-pip-version-check dry-run editable exists-action
force-reinstall global-option group hash help ignore-installed ignore-requires-python
implementation install-option isolated log no-binary no-build-isolation no-clean no-color
no-compile no-deps no-input no-python-version-warning no-use-pep517 no-warn-conflicts
no-warn-script-location only-binary only-final platform pre prefer-binary prefix progress-bar
python python-version quiet report require-hashes require-virtualenv requirement
requirements-from-script root root-user-action src target upgrade upgrade-strategy
uploaded-prior-to use-pep517 user verbose version
"""
UVS_OTHERS = """
BREAK_SYSTEM_PACKAGES COMPILE_BYTECODE CONFIG_FILE EXCLUDE_NEWER FORK_STRATEGY LINK_MODE
MANAGED_PYTHON NO_BUILD_ISOLATION NO_CONFIG NO_EDITABLE NO_MANAGED_PYTHON NO_PROGRESS NO_SOURCES
NO_VERIFY_HASHES PRERELEASE PROJECT PYTHON REQUIRE_HASHES RESOLUTION SYSTEM_PYTHON TORCH_BACKEND
WORKING_DIR
"""


@pytest.fixture(autouse=True)
def nothing_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """But what a test sets."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "SSL_", "ALL_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_each_option_of_pip_is_a_source_or_kept_out() -> None:
    others = set(PIPS_OTHERS.split())
    assert pips_options() - set(sources.PIPS) - others == set()
    assert not others & set(sources.PIPS)


def test_each_variable_of_uv_is_a_source_or_kept_out() -> None:
    kept = {name for name in uvs_variables() if sources.UVS.match(name)}
    others = {name.removeprefix("UV_") for name in uvs_variables() - kept}
    assert others - set(UVS_OTHERS.split()) == set()
    assert "UV_DEFAULT_INDEX" in kept
    # These are in no help.
    assert all(map(sources.UVS.match, ["UV_INDEX_OURS_PASSWORD", "UV_HTTP_TIMEOUT"]))
    assert not sources.UVS.match("UV_NO_INSTALLER_METADATA")


def test_pips_configuration_is_told_to_both_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = tmp_path / "pip.conf"
    conf.write_text(
        "[global]\nindex-url = https://one.example/simple\ncert = /etc/ssl/mine.pem\n"
        "quiet = 2\ntarget = /elsewhere\nextra-index-url =\n  https://a.example\n  https://b.example\n"
        "[install]\nindex-url = https://two.example/simple\nprefix = /elsewhere\n"
    )
    for name, value in for_others().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(conf))
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels /more")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "180")
    assert sources.settings(PIP) == {
        "PIP_INDEX_URL": "https://two.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.example https://b.example",
        "PIP_CERT": "/etc/ssl/mine.pem",
        "PIP_FIND_LINKS": "/wheels /more",
        "PIP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://two.example/simple",
        "UV_INDEX": "https://a.example https://b.example",
        "SSL_CERT_FILE": "/etc/ssl/mine.pem",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_uvs_configuration_is_told_to_both_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/uv.toml").write_text(
        'find-links = ["/wheels", "/more"]\nallow-insecure-host = ["here.example"]\n'
        'exclude-newer = "2020-01-01"\n[pip]\ntarget = "/elsewhere"\nno-index = false\n'
        '[[index]]\nurl = "https://one.example/simple"\ndefault = true\n'
        '[[index]]\nname = "more"\nurl = "https://two.example/simple"\n'
    )
    monkeypatch.setenv("UV_EXTRA_INDEX_URL", "ours=https://three.example/simple")
    monkeypatch.setenv("UV_INDEX_OURS_PASSWORD", "hunter2")
    monkeypatch.setenv("PIP_INDEX_URL", "https://pips.example/simple")
    assert sources.settings(PIP) == {
        "PIP_INDEX_URL": "https://pips.example/simple",  # each has its own first
        "PIP_EXTRA_INDEX_URL": "https://three.example/simple",
        "PIP_FIND_LINKS": "/wheels /more",
        "PIP_NO_INDEX": "False",
        "PIP_TRUSTED_HOST": "here.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://one.example/simple",
        "UV_INDEX": "ours=https://three.example/simple",
        "UV_INDEX_OURS_PASSWORD": "hunter2",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_NO_INDEX": "False",
        "UV_INSECURE_HOST": "here.example",
    }
