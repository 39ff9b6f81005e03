"""The web page and the REST interface of a project, served on this machine.

Nothing of it is imported by anything else; the packages it needs are the extra `web`.
"""
