"""Other data in the place of the paper's: a page that runs on some says so."""


def tell(papers: str, stand_in: str, name: str = "", stored: str = "") -> None:
    """Say in a notebook on which data its live run is, where they are not ``papers``; the book says
    so under the page's title, and what the stored runs are on.

    stand_in: what the live run is on. stored: what stored runs, and so the answers, are on, if not
    ``papers``. name: of the set in data/sources.toml, so that the book runs the page again when it
    is there.
    """
    from IPython.display import display

    said = f"stands in for {papers}: {stand_in or 'nothing, these are the data themselves'}"
    note = {"papers": papers, "stand_in": stand_in, "stored": stored or papers, "set": name}
    display({"text/plain": said}, raw=True, metadata={"stand_in": note} if stand_in else {})
