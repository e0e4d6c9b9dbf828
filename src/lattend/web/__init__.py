"""The workbench: a page where a typed rule answers at once, and the same answers as JSON.

panel.py        what a panel is: a typed question, a typed answer, and the function between them
panels/         one file a topic; each calls the library and does no mathematics of its own
snippets.py     a question as Python and as a command; page_links.py reads a command as the state of a page
views.py        formulas, reports and charts as the page shows them; rules.py, a rule and its letters
app.py          the routes; static.py, the page itself; guards.py, who may ask, how much and how often
pool.py         the order of questions, with deadlines; fork_server.py forks the processes that answer,
                worker.py runs in them, library.py loads what panels use, answer_cache.py keeps answers
serve.py        the server; export.py, the examples as a site of plain files
"""
