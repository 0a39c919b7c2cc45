import pytest

from bnca.files import replacing


def test_whole_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    with replacing(path) as new:
        assert new.suffix == ".txt"
        new.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_failed_writing_keeps_the_old_file(tmp_path):
    old = tmp_path / "old.txt"
    old.write_text("kept")

    def fail():
        with replacing(old) as new:
            new.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert old.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [old]
