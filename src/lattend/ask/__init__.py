"""The questions that people bring to attention, each with the command and the Python that answer it."""

from lattend.ask.question import Question as Question
from lattend.ask.question import close_words as close_words
from lattend.ask.question import nearest as nearest
from lattend.ask.question import questions as questions
from lattend.ask.question import search as search
