"""Writes a report: the page, a picture for every chart, a CSV for every table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from backsweep.lab.report.answers import Report
from backsweep.lab.report.chart import AnyChart
from backsweep.lab.report.figures import draw, draw_all
from backsweep.lab.report.markdown import BEGIN, END, block
from backsweep.lab.report.marked_text import replace_between
from backsweep.lab.report.page import page_of
from backsweep.lab.report.solving_time import soonest_chart
from backsweep.lab.report.tables import table_name, write_table


def write_page(report: Report, path: Path) -> Path:
    """Write the page alone, as one file; return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_of(report, files=False), encoding="utf-8")
    return path


def write_report(report: Report, out: Path, processes: int = 1, say: Callable[[str], None] = lambda _: None) -> Path:
    """Write everything below `out`; return the page. `say` is told what is done next.

    Pictures are drawn by `processes` processes. With more than one, a script that calls this needs an
    ``if __name__ == "__main__"`` guard.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_table(
        out / "verdicts.csv",
        [
            {
                "id": answer.id,
                "question": answer.title,
                "claim": answer.question.claim,
                "verdict": answer.verdict.outcome,
                "about": answer.verdict.about,
                "summary": answer.verdict.found,
                "records": answer.verdict.records,
            }
            for answer in report.answers
        ],
    )
    for answer in report.answers:
        name = answer.slug
        if answer.verdict.table:
            write_table(out / "tables" / f"{name}.csv", answer.verdict.table)
        if answer.scores:
            write_table(out / "tables" / f"{name}-scores.csv", answer.scores)
        if answer.thresholds:
            write_table(out / "tables" / f"{name}-steps.csv", answer.thresholds)
        for title, entries in answer.verdict.more.items():
            if entries:
                write_table(out / "tables" / table_name(name, title), entries)
        for chart in answer.charts:
            write_table(out / "figures" / f"{chart.name}.csv", list(chart.entries()))
    pictures: dict[Path, AnyChart] = {
        out / "figures" / f"{chart.name}.png": chart for answer in report.answers for chart in answer.charts
    }
    say(f"drawing {len(pictures)} {'picture' if len(pictures) == 1 else 'pictures'} ...")
    draw_all(pictures, processes)
    say("writing the page ...")
    page = out / "index.html"
    page.write_text(page_of(report), encoding="utf-8")
    return page


def write_markdown(report: Report, path: Path) -> None:
    """Write the verdicts into a file, between its marked lines.

    Charts that it shows, or that are already in the folder `images` next to it, are drawn again.
    """
    text = replace_between(path.read_text(encoding="utf-8"), BEGIN, END, block(report))
    charts = [chart for answer in report.answers for chart in answer.charts]
    charts += [] if report.soonest is None else [soonest_chart(report.soonest)]
    for chart in charts:
        picture = path.parent / "images" / f"{chart.name}.png"
        if picture.exists() or f"(images/{picture.name})" in text:
            draw(chart, picture)
    path.write_text(text, encoding="utf-8")
