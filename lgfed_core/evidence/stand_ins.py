"""Other data in the place of the paper's: a page that runs on some says so."""


def tell(papers: str, stand_in: str, name: str = "") -> None:
    """Say in a notebook what stands in for ``papers``; the book repeats it under the page's title.

    name: of the set in data/sources.toml, so that the book runs the page again when it is there.
    """
    from IPython.display import display

    said = f"stands in for {papers}: {stand_in or 'nothing, these are the data themselves'}"
    note = {"stand_in": {"papers": papers, "stand_in": stand_in, "set": name}} if stand_in else {}
    display({"text/plain": said}, raw=True, metadata=note)
