import pytest

from bnca import __version__, cli


def test_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["nothing"])
    assert error.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_interruption_ends_politely(monkeypatch, capsys, tmp_path):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bnca.experiments.compare.run", stop)
    assert cli.main(["compare", "--out", str(tmp_path)]) == 130
    printed = capsys.readouterr()
    assert "Interrupted" in printed.err
    assert "0 of 100 results are kept" in printed.out


def test_version_and_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert __version__ in capsys.readouterr().out
    assert cli.main([]) == 0
    assert "compare" in capsys.readouterr().out
