"""Lattend where people work: Hugging Face's transformers."""
