"""The order of a page's cells, without a kernel."""

from __future__ import annotations

from typing import Any

from cradle_lib.book.notebooks.page import as_page

BANNER = '<div class="cradle-banner" role="note">what it rests on</div>'


def text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(source: str, *shown: str, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": each}
        if each == "aside"
        else {"output_type": "display_data", "data": {"text/html": [each]}, "metadata": {}}
        for each in shown
    ]
    metadata = {"tags": list(tags), "papermill": {"duration": 1}}
    return {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": metadata,
        "outputs": outputs,
        "source": source,
    }


def shape(*cells: dict[str, Any]) -> list[str]:
    """Abbreviates a page: text unchanged, results in angle brackets, code after a bar."""
    found = []
    for cell in as_page(cells):
        tags = cell["metadata"]["tags"]
        if cell["cell_type"] == "markdown":
            found.append(cell["source"])
        elif cell["outputs"]:
            assert "remove-input" in tags or "show-input" in tags
            found += ["<" + "".join(each["data"]["text/html"]) + ">" for each in cell["outputs"]]
        else:
            assert tags == ["hide-input"]
            found.append("| " + cell["source"].replace("\n\n", ", "))
    return found


def test_headline_and_banner_are_between_title_and_text() -> None:
    assert shape(
        text("# Title\n\nA question."),
        code("load", BANNER),
        code("draw", "figure"),
        text("## More"),
        code("conclude", "In short.", tags=("finding",)),
    ) == [
        "# Title", "<In short.>", f"<{BANNER}>", "A question.",
        "<figure>", "| load, draw, conclude", "## More",
    ]  # fmt: skip


def test_code_without_output_joins_the_next_result_or_the_last_one() -> None:
    assert shape(
        text("# Title"),
        code("one"),
        code("two", "aside"),
        text("Text between."),
        code("three", "first"),
        code("four", "second"),
        code("five"),
        code("six"),
    ) == [
        "# Title", "Text between.", "<first>", "| one, two, three", "<second>", "| four, five, six"
    ]  # fmt: skip


def test_a_page_without_results_keeps_its_code() -> None:
    assert shape(text("# Title"), code("one"), code("two")) == ["# Title", "| one, two"]


def test_code_tagged_show_input_stays_above_its_result() -> None:
    [shown] = as_page([code("def mine(): ...", "made", tags=("show-input",))])
    assert shown["source"] == "def mine(): ..."
    assert shown["outputs"]
