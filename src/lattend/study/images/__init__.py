"""Labelled images to train on: the digits of scikit-learn, and sets that packages of Debian and npm carry."""
