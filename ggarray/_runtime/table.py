"""Tables as text."""

from collections.abc import Iterable, Iterator, Sequence


def aligned_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; a column is its alignment, ``<`` or ``>``, before its title."""
    lines = [[column[1:] for column in columns], *rows]
    widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
    specs = [f"{column[0]}{width}" for column, width in zip(columns, widths, strict=True)]
    for line in lines:
        yield "  ".join(map(format, line, specs)).rstrip()
