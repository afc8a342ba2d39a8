"""Fixtures of the judges. The tests run on a test host, by pytest-testinfra (tests/hosts/servers)."""

import pytest
import yaml


@pytest.fixture(scope="module")
def puppet(host):
    """Returns what `puppet resource KIND NAME` reads back, as a dictionary."""

    def read(kind, name):
        answer = host.run("puppet resource %s %s --to_yaml", kind, name)
        assert answer.rc == 0, answer.stderr
        return yaml.safe_load(answer.stdout)[kind][name]

    return read
