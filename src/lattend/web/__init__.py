"""The workbench: a page where a typed rule answers at once, and the same answers as JSON.

panel.py     what a panel is: a typed question, a typed answer, and the function between them
panels/      one file a panel; each calls the library and does no mathematics of its own
pool.py      the processes that answer, with deadlines; worker.py is what runs in them
app.py       the routes; guards.py, who may ask, how much and how often; static.py, the page itself
serve.py     the server; export.py, the examples as a site of plain files
"""
