"""The workbench: a page where a typed rule answers at once, and the same answers as JSON.

panel.py     what a panel is: a typed question, a typed answer, and the function between them
panels/      one file a panel; each calls the library and does no mathematics of its own
pool.py      who is answered when, with deadlines; fork_server.py forks the processes that answer, worker.py
             is what runs in them, answers.py keeps what was answered
app.py       the routes; batch.py, many questions in one request; static.py, the page itself;
             guards.py, who may ask, how much and how often
serve.py     the server; export.py, the examples as a site of plain files
"""
