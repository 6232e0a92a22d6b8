"""The job's options."""

import pytest

from analytics.reconcile import parse


def test_a_name_that_no_file_can_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        parse(["--report", "a" * 300])
    assert refusal.value.code == 2
    assert "can't be written: File name too long" in capsys.readouterr().err
