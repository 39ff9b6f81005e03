from tests.unit.app.conftest import clock, project

__all__ = ["clock", "project"]
