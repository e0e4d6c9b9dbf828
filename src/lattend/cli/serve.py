"""lattend serve: the workbench in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.cli.output import tell


@dataclass(frozen=True)
class ServeCommand(Command):
    """The workbench: a page where a typed rule answers at once.

    It runs on this machine alone and fetches nothing from elsewhere. Ctrl-C ends it.

        lattend serve
        lattend serve --port 9000 --no-browser
        lattend serve --export site
    """

    has_json = False

    host: str = setting("ADDRESS", "Where to listen; other machines reach 0.0.0.0.", "127.0.0.1")
    port: int | None = option("PORT", "The port; the first free one from 8321 on.", least=0, most=65535)
    workers: int = setting("N", "Processes that count; half as many that have torch.", 3, least=1, most=64)
    name: list[str] | None = option(
        "HOST", "A name under which browsers reach it, behind a proxy or on a network."
    )
    browser: bool = flag("Open the page.", "--browser/--no-browser", default=True)
    export: Path | None = option(
        "DIR", "Serve nothing: write the page and the answers to its examples here, as plain files."
    )

    def answer(self) -> Answer:
        from lattend.web.serve import needed
        from lattend.web.serve import serve as serving

        if self.export is not None:
            needed()
            from lattend.web.export import export as exporting

            exporting(self.export, tell)
            return
        serving(
            self.host, self.port, workers=self.workers, browser=self.browser, tell=tell, names=self.name or ()
        )
