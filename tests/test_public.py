"""What `import lattend` gives; test_architecture says what it leaves unloaded."""

import pytest

import lattend as lt


def test_public_names() -> None:
    assert len(lt.__all__) <= 22  # one for every system a person asks for by name
    assert set(lt.__all__) <= set(dir(lt))
    for name in lt.__all__:
        assert getattr(lt, name) is not None
    with pytest.raises(
        AttributeError, match="module 'lattend' has no attribute 'rul'; it has rule, Rule, rules"
    ):
        lt.rul  # noqa: B018
