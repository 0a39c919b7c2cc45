"""The summary, and the page of `bnca reproduce` in a browser."""

import csv
import json
import re

import numpy as np
import pytest
import verdict_rows as made

from bnca.commands.reproduce import report
from bnca.experiments.run import Results, Skipped, Unit
from bnca.experiments.spec import DataSpec, Part, Study
from bnca.report import html
from bnca.report.drawings import DRAWINGS
from bnca.report.drawings.style import save
from bnca.report.summarize import Made, summarize

HOSTILE = '<script>window.hostile = 1</script><img src=x onerror="window.hostile = 1">&"\''
ABSENT = DataSpec("absent", "Absent")
GONE = Skipped(
    Unit(Part(Study("figure2/faces", ABSENT, print), 0), None),
    f"absent.npz is not in the data folder {HOSTILE}",
)


def no_number(name):
    raise AssertionError(name)


@pytest.fixture(scope="module")
def rows():
    out = [*made.everything(), *made.pictures()]
    for row in out:
        if (row["table"], row.get("size"), row.get("method")) == ("table1", 20, "NCM"):
            row |= {"accuracy": None, "reason": f"ValueError: {HOSTILE}"}
    return out


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    report(Results(rows, [GONE]), Made("bnca reproduce all --data-dir DATA"), out)
    return out


@pytest.fixture(scope="module")
def summary(folder):
    text = (folder / "reproduce.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=no_number)


@pytest.fixture
def page(folder, browser):
    browser.open(folder / "reproduce.html")
    return browser


def test_each_claim_has_a_verdict_with_numbers(summary):
    assert [claim["id"] for claim in summary["claims"]] == [f"C{i}" for i in range(1, 15)]
    for claim in summary["claims"]:
        numbers = [
            value
            for part in claim["numbers"]["parts"]
            for entry in [part, *part.get("cells", [])]
            for value in entry.values()
            if isinstance(value, float)
        ]
        assert claim["verdict"] in {"holds", "does not hold", "cannot be tested here"}
        assert numbers, claim["id"]
        assert np.isfinite(numbers).all()
        assert re.search(r"\d", claim["why"])
        assert claim["command"] == f"bnca reproduce {claim['id']}"


def test_ranks_of_all_cells_have_intervals(summary):
    first, second, third = summary["tables"]
    assert [table["id"] for table in (first, second, third)] == ["table1", "table2", "table3"]
    assert (len(first["rows"]), len(second["rows"])) == (9, 12)
    for row in [*first["rows"], *second["rows"]]:
        rank = row["rank"]
        assert 1 <= rank["low"] <= rank["rank"] <= rank["high"] <= rank["of"]
        assert rank["of"] == (5 if first["rows"].count(row) and row["size"] == 20 else 6)
        assert row["cells"]["BNCA"]["published"] > 70


def test_cells_are_means_of_rows_beside_published_numbers(summary, rows):
    cell = summary["tables"][0]["rows"][0]["cells"]["BNCA"]
    own = [
        row["accuracy"]
        for row in rows
        if (row["table"], row["title"], row.get("size")) == ("table1", "Balance", 10)
        and row["method"] == "BNCA"
    ]
    assert cell["mean"] == pytest.approx(100 * np.mean(own))
    assert cell["published"] == 75.42
    assert cell["difference"] == pytest.approx(cell["mean"] - 75.42)
    assert cell["low"] < cell["mean"] < cell["high"]
    assert (cell["best"], cell["repeats"]) == (True, len(own))
    lost = summary["tables"][0]["rows"][1]["cells"]["NCM"]
    assert (lost["mean"], lost["published"]) == (None, 72.62)


def test_what_is_missing_is_listed_with_its_reason(summary, page):
    said = {entry["experiment"]: entry["reason"] for entry in summary["skipped"]}
    assert said["figure2/faces"] == GONE.reason
    assert said["table1/balance, NCM"].startswith("ValueError")
    shown = page.run("document.querySelector('#skipped').innerText")
    assert all(name in shown and reason in shown for name, reason in said.items())


def test_files_are_all_there(folder, summary, rows):
    for figure in summary["figures"]:
        for name in figure["files"]:
            assert (folder / name).stat().st_size > 1000
        assert figure["alt"]
    assert len(summary["figures"]) == 9
    with (folder / "rows.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(rows) == summary["rows"]
    assert not {"image", "probabilities", "ranking"} & set(lines[0])


@pytest.mark.parametrize("name", ["figure3", "figure5"])
def test_same_rows_same_pictures(folder, rows, tmp_path, name):
    drawing = next(drawing for drawing in DRAWINGS if drawing.id == name)
    save(drawing.draw, [row for row in rows if row["table"] == name], tmp_path, name)
    for kind in ("svg", "pdf"):
        again = tmp_path / f"{name}.{kind}"
        assert again.read_bytes() == (folder / "figures" / again.name).read_bytes()


def test_rows_of_two_code_versions_are_refused(rows):
    mixed = [dict(row) for row in rows]
    mixed[-1]["code"] = "other"
    with pytest.raises(ValueError, match="figure4/mnist are of different code"):
        summarize(mixed, {}, Made("x"))


def test_page_is_one_file(folder, page):
    text = (folder / "reproduce.html").read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href|action)\s*=\s*["']?\s*(?:https?:)?//""", text)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#|data:)", text)
    assert page.errors == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests)
    assert sum(url.startswith("file:") for url in page.requests) == 1
    assert page.run("window.hostile") is None


COLUMN = """(i => [...document.querySelectorAll('#table1 tbody tr')].map(
    row => row.cells[i].dataset.sort))"""


@pytest.mark.parametrize(("index", "numeric"), [(0, False), (7, True), (4, True)])
def test_tables_sort(page, index, numeric):
    header = f"#table1 thead th:nth-child({index + 1})"
    heading = page.run(f"document.querySelector('{header}').innerText")
    assert heading.split()[0] == {0: "Data", 7: "BNCA", 4: "NCM"}[index]
    first = page.run(f"{COLUMN}({index})")
    key = float if numeric else str
    known = sorted((x for x in first if x), key=key)
    empty = [x for x in first if not x]
    assert len(set(known)) > 1
    for order in ("ascending", "descending", "none"):
        page.click(f"{header} button")
        expected = {"ascending": known, "descending": known[::-1]}.get(order)
        assert page.run(f"{COLUMN}({index})") == (first if order == "none" else expected + empty)
        assert page.run(f"document.querySelector('{header}').getAttribute('aria-sort')") == order


def test_tables_sort_by_keyboard(page):
    page.run("document.querySelector('#table1 thead th:nth-child(8) button').focus()")
    page.press("Enter", 13)
    values = [float(x) for x in page.run(f"{COLUMN}(7)")]
    assert values == sorted(values)
    assert "Sorted by BNCA" in page.run("document.getElementById('status').textContent")


def test_pictures_have_text_alternatives(page):
    found = page.run(
        "[...document.querySelectorAll('figure')].map(f => [f.id, "
        "f.querySelector('svg')?.getAttribute('role'), "
        "f.querySelector('svg')?.getAttribute('aria-label'), f.innerText])"
    )
    assert len(found) == 9
    for name, role, label, text in found:
        assert role == "img", name
        assert len(label) > 40
        assert f"bnca reproduce {name}" in text or name == "leads"
    assert page.run("document.querySelectorAll('main img:not([alt])').length") == 0
    assert page.run(IDS_TWICE) == []


IDS_TWICE = """(() => {
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    return ids.filter((id, i) => ids.indexOf(id) !== i);
})()"""


def test_every_number_and_section_leads_to_its_command(page):
    commands = page.run(
        "[...document.querySelectorAll('article, section.results, figure')].map("
        "e => [e.id, e.querySelector('.command code')?.textContent])"
    )
    assert len(commands) == 14 + 3 + 9
    assert all(said.startswith("bnca reproduce ") for _, said in commands)
    assert dict(commands)["C4"] == "bnca reproduce C4"
    links = page.run(
        "[...document.querySelectorAll('a.number')].map(a => [a.closest('section').id, "
        "document.querySelector(a.getAttribute('href'))?.querySelector('code').textContent])"
    )
    assert len(links) > 9 * 6 + 12 * 6
    assert all(said == f"bnca reproduce {table}" for table, said in links)
    broken = page.run(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href'))"
        ".filter(href => !document.querySelector(href))"
    )
    assert broken == []


def test_a_click_on_a_number_says_where_it_is_from(page):
    page.click("#table2 tbody tr:nth-child(4) td:nth-child(7) a.number")
    said = page.run("document.getElementById('provenance').innerText")
    assert page.run("document.getElementById('provenance').open") is True
    for words in ("BML", "Caltech-10 (SURF)", "bnca reproduce table2", "68.31", "95 % interval"):
        assert words in said
    page.press("Escape", 27)
    assert page.run("document.getElementById('provenance').open") is False
    assert page.errors == []


def test_a_telephone_shows_all_of_it(folder, browser):
    browser.open(folder / "reproduce.html", width=390, height=800)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.run("document.documentElement.scrollWidth") <= 390
    outside = browser.run(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .drawing, "
        ".unseen') && e.getBoundingClientRect().right > 391).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def luminance(browser, selector, what):
    """Relative luminance of a colour as the page has it, by WCAG."""
    rgb = browser.run(f"getComputedStyle(document.querySelector('{selector}')).{what}")
    values = [int(x) / 255 for x in re.findall(r"\d+", rgb)[:3]]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(folder, browser, scheme):
    browser.media(scheme)
    browser.open(folder / "reproduce.html")
    ground = luminance(browser, "body", "backgroundColor")
    assert (ground > 0.5) == (scheme == "light")
    for selector in ("body", ".quiet", "a.id", "blockquote", "caption"):
        ink = luminance(browser, selector, "color")
        high, low = max(ink, ground), min(ink, ground)
        assert (high + 0.05) / (low + 0.05) > 4.5, selector


def test_theme_can_be_chosen(page):
    grounds = []
    for _ in range(3):
        page.click("#theme")
        theme = page.run("document.documentElement.dataset.theme")
        grounds.append((theme, luminance(page, "body", "backgroundColor") > 0.5))
    assert sorted(grounds) == [("auto", True), ("dark", False), ("light", True)]


def test_paper_shows_all_and_no_buttons(page, tmp_path):
    page.media(medium="print")
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert page.run(shown.format("nav")) == "none"
    assert page.run(shown.format(".copy")) == "none"
    assert page.run(shown.format("#table1 table")) == "table"
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("document.querySelectorAll('details:not([open])').length") == 0
    page.paper(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert page.errors == []


def test_boxes_hide_what_tables_show(page):
    shown = "getComputedStyle(document.querySelector('#table1 .{}')).display"
    for box, part in (("intervals", "interval"), ("published", "published")):
        assert page.run(shown.format(part)) == "block"
        page.click(f"input[data-shows={box}]")
        assert page.run(shown.format(part)) == "none"


def test_page_of_nothing(browser, tmp_path):
    summary = summarize([], {"table1/balance": "It was not asked to run."}, Made("x", quick=True))
    html.write({**summary, "figures": []}, tmp_path / "empty.html")
    browser.open(tmp_path / "empty.html")
    assert browser.errors == []
    said = browser.run("document.body.innerText")
    for words in ("14 cannot be tested here", "No table was run", "No figure", "A quick run"):
        assert words in said
    assert "Made on" not in said


def test_failure_to_write_leaves_what_was_there(folder, rows, monkeypatch):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for target in ("pathlib.Path.write_text", "matplotlib.figure.Figure.savefig", "csv.DictWriter"):
        with monkeypatch.context() as patch:
            patch.setattr(target, full)
            with pytest.raises(OSError, match="No space left"):
                report(Results(rows, []), Made("bnca reproduce all"), folder)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
