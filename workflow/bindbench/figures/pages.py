"""HTML pages that hold everything they show: no script, no font, no link from outside, so they open from anywhere."""

from html import escape

STYLE = """
:root { --ink: #1d2430; --soft: #586174; --line: #d9dee7; --paper: #ffffff; --tint: #f4f6fa; --right: #0b6b3a;
  --wrong: #a5252a; --tie: #7a5200; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 84rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; }
p { max-width: 52rem; margin: .4rem 0; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
:focus-visible { outline: 3px solid #2563b0; outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .8rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th[scope=row], th:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--ink); white-space: nowrap; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; }
small { color: var(--soft); white-space: nowrap; }
@media print { body { max-width: none; padding: 0; } .scroll { overflow: visible; } }
"""


def html_page(title: str, body: str, style: str = "") -> str:
    """A whole page. title: plain text, also the heading; body: HTML; style: more CSS."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def html_table(caption: str, header: list[str], rows: list[list[str]], label: str = "") -> str:
    """A table that scrolls by itself on a narrow screen.

    caption, header, label: plain text; the label names the table to a screen reader, by default it is the caption.
    rows: cells of HTML, the first of each a name.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label or caption)}">\n<table>\n'
        + (f"<caption>{escape(caption)}</caption>\n" if caption else "")
        + f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )
