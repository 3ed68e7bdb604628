"""The drawing of the packages: python docs/site/drawing.py writes docs/images/architecture.svg.

To add a package, add it to BOXES and draw its arrows; a package that is not in the drawing fails a test.
"""

from __future__ import annotations

from pathlib import Path

SVG = Path(__file__).parent.parent / "images" / "architecture.svg"
GROUPS = {
    "lab: experiments": (10, 10, 800, 82),
    "agent: training": (10, 112, 485, 82),
    "the library: import backsweep": (10, 214, 800, 282),
}
"""Title and (left, top, width, height)."""
BOXES = {
    "lab/report": (20, 36, 184, "the page"),
    "lab/runs": (216, 36, 184, "jobs over cores, devices"),
    "lab/claims": (412, 36, 184, "questions, rules, statistics"),
    "lab/studies": (608, 36, 190, "no training needed"),
    "agent/session": (20, 138, 146, "folders, records, CLI"),
    "agent/fleet": (178, 138, 146, "runs together, one loop"),
    "agent/learner": (336, 138, 146, "networks, triton"),
    "inspection": (518, 102, 134, "will graphs help?"),
    "view": (518, 152, 134, "the graph in a browser"),
    "tasks": (664, 138, 146, "environments by name"),
    "integrations": (20, 242, 180, "buffers for other frameworks"),
    "replay": (310, 242, 200, "add, sample, renew_values, save"),
    "snapshot": (618, 242, 180, "crash-safe folders"),
    "samplers": (150, 312, 180, "which rows come next"),
    "planning": (490, 312, 180, "values of the stored graph"),
    "sweep": (20, 378, 190, "reverse breadth-first search"),
    "graph": (310, 378, 200, "predecessors of every state"),
    "store": (150, 442, 180, "ring of rows, observations"),
    "encoding": (490, 442, 180, "observation to key"),
    "jit": (260, 516, 300, "compiling, kernel cache, arrays, random streams"),
}
"""Package and (left, top, width, what it is)."""
HEIGHT = 44
ARROWS = (
    "M204 58H214", "M400 58H410", "M596 58H606",  # within lab
    "M250 92V110",  # lab to agent
    "M166 160H176", "M324 160H334", "M495 149H662", "M652 124H737V136",  # agent to tasks, inspection to tasks
    "M495 174H516", "M652 174H662", "M540 196L500 240",  # agent to view, view to tasks and replay
    "M410 194V240",  # agent to replay
    "M200 264H308", "M510 264H616", "M350 286L290 310", "M470 286L530 310",
    "M210 356L160 376", "M210 400H308", "M560 356L490 376", "M370 422L290 440", "M450 422L530 440",
    "M410 496V514", "M810 160H824V538H562",  # the library and tasks to jit
)  # fmt: skip
STYLE = """text { font: 11px system-ui, sans-serif; fill: #333b4a; text-anchor: middle }
.name { font-weight: 600; font-size: 13px; fill: #101828 }
.title { font-weight: 600; font-size: 12px; fill: #475067; text-anchor: start }
.group { fill: #eef1f8; stroke: #c3cbdd }
.box { fill: #fff; stroke: #7f8db0 }
.arrow { fill: none; stroke: #5a6478; stroke-width: 1.3; marker-end: url(#head) }"""


def drawing() -> str:
    """Return the drawing as SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 834 568" role="img" aria-labelledby="title">',
        '<title id="title">The packages of backsweep; an arrow leads from a package to one that it imports</title>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#5a6478"/></marker></defs>',
        f'<style>\n{STYLE}\n</style>\n<rect width="834" height="568" fill="#fff"/>',
    ]
    for title, (left, top, width, height) in GROUPS.items():
        parts.append(f'<rect class="group" x="{left}" y="{top}" width="{width}" height="{height}" rx="10"/>')
        parts.append(f'<text class="title" x="{left + 12}" y="{top + 18}">{title}</text>')
    parts += [f'<path class="arrow" d="{path}"/>' for path in ARROWS]
    for name, (left, top, width, about) in BOXES.items():
        middle = left + width // 2
        parts.append(f'<rect class="box" x="{left}" y="{top}" width="{width}" height="{HEIGHT}" rx="6"/>')
        parts.append(f'<text class="name" x="{middle}" y="{top + 18}">{name}</text>')
        parts.append(f'<text x="{middle}" y="{top + 34}">{about}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    SVG.write_text(drawing())
