"""lattend serve: the workbench in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lattend.cli.arguments import option
from lattend.cli.output import tell

EXAMPLES = ("lattend serve", "lattend serve --port 9000 --no-browser", "lattend serve --export site")


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other machines reach 0.0.0.0.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, option("PORT", "The port; the first free one from 8321 on.", min=0, max=65535)
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", help="Processes that count; half as many that have torch.", min=1, max=64),
    ] = 3,
    name: Annotated[
        list[str] | None,
        option("HOST", "A name under which browsers reach it, behind a proxy or on a network.", "--name"),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    export: Annotated[
        Path | None,
        option("DIR", "Serve nothing: write the page and the answers to its examples here, as plain files."),
    ] = None,
) -> None:
    """The workbench: a page where a typed rule answers at once.

    It runs on this machine alone and fetches nothing from elsewhere. Ctrl-C ends it.
    """
    from lattend.web.serve import needed
    from lattend.web.serve import serve as serving

    if export is not None:
        needed()
        from lattend.web.export import export as exporting

        exporting(export, tell)
        return
    serving(host, port, workers=workers, browser=browser, tell=tell, names=name or ())
