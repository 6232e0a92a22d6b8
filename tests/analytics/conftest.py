"""Warehouses anywhere."""

from pathlib import Path
from uuid import uuid4

import pytest


@pytest.fixture
def bucket(s3: Path) -> Path:
    """Where a server of S3's protocol keeps a warehouse."""
    bucket = s3 / uuid4().hex
    bucket.mkdir()
    return bucket / "warehouse"


@pytest.fixture(params=["folder", "S3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A warehouse's folder, or that in which a server keeps it: `root_of` tells its root."""
    where: Path = request.getfixturevalue("bucket") if request.param == "S3" else tmp_path
    return where
