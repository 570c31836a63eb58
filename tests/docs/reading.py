"""What the tests read of a page: sections, tables, and blocks of code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OPERATIONS = DOCS / "operations.md"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))


def section(text: str, title: str) -> str:
    """What stands below the heading that ends in `title`, up to the next one of its level or above."""
    lines = text.splitlines()
    fenced = False
    begin, level = None, 0
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        found = None if fenced else re.match(r"(#+) (.*)", line)
        if found is None:
            continue
        if begin is not None and len(found[1]) <= level:
            return "\n".join(lines[begin:number])
        if begin is None and found[2].endswith(title):
            begin, level = number + 1, len(found[1])
    assert begin is not None, f"there is no section {title!r}"
    return "\n".join(lines[begin:])


def table(text: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column is headed `first`, by column."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            head = _cells(line)
            next(lines)
            rows = []
            for row in lines:
                if not row.startswith("|"):
                    break
                cells = _cells(row)
                assert len(cells) == len(head), row
                rows.append(dict(zip(head, cells, strict=True)))
            assert rows
            return rows
    raise AssertionError(f"there is no table headed {first!r}")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def code(cell: str) -> list[str]:
    """Everything between backticks, in order."""
    return re.findall(r"`([^`]+)`", cell)


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The lines behind a prompt in all console blocks, in order; what stands between them is output."""
    return [
        line.removeprefix("$ ")
        for block in blocks(text, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
