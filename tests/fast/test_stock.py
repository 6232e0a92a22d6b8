"""Servers of one's own in place of the wheels': what is no such folder."""

from pathlib import Path

import pytest

from demo.embedded import stock
from demo.embedded.failures import NeverStarts

# Each with the programs that are there, with the rights that they have.
LACKING = [
    (stock.POSTGRES, {}, "no postgres in it"),
    (stock.REDIS, {"redis-cli": 0o755}, "no valkey-server and no redis-server in it"),
    (stock.REDIS, {"redis-server": 0o600}, "no redis-server in it"),  # nobody may run it
]


@pytest.mark.parametrize(("setting", "there", "lacks"), LACKING)
def test_a_folder_that_lacks_a_program_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    there: dict[str, int],
    lacks: str,
) -> None:
    for program, rights in there.items():
        (tmp_path / program).touch()
        (tmp_path / program).chmod(rights)
    monkeypatch.setenv(setting, str(tmp_path))
    with pytest.raises(NeverStarts, match=f"^{setting}={tmp_path} is refused: .*{lacks}$"):
        stock.require()
