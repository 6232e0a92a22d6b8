"""Parses HTML as a browser does."""

from html.parser import HTMLParser


class Markup(HTMLParser):
    """The elements, attributes and text of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents = {"style": "", "script": ""}
        self.text = ""
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.contents:
            self.contents[self._inside] += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.text += f"<!--{data}-->"

    @property
    def names(self) -> set[str]:
        """The names of all elements and attributes."""
        return {name for tag, attributes in self.elements for name in (tag, *attributes)}

    @property
    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]
