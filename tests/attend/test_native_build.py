"""The native kernel is there wherever it can be built; its other tests are skipped where it is not."""

from __future__ import annotations

from lattend.attend.kernels.native import build, library


def test_where_there_is_a_compiler_there_is_the_library() -> None:
    assert build.compiler() is None or library.missing() is None, "make setup builds it"
