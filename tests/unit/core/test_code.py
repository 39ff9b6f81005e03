import functools
import itertools
import linecache
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from signoff.core.code import describe_code
from signoff.core.digest import digest

numbers = itertools.count()


def function(source: str, name: str = "step") -> Any:
    """Runs a module's source, which `inspect` can find again, and returns one of its names."""
    text = textwrap.dedent(source)
    file = f"<module {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "a_module"}
    exec(compile(text, file, "exec"), names)
    return names[name]


def same(one: Any, other: Any) -> bool:
    return digest(describe_code(one)) == digest(describe_code(other))


PLAIN = """
    def step(ctx):
        return "ok", {"n": 1}
"""


@pytest.mark.parametrize(
    "source",
    [
        """
        # A comment.
        def step(ctx):
            # Another one.
            return "ok", {"n": 1}  # And one here.
        """,
        """
        x = 1


        def step(
            ctx,
        ):
            return (
                'ok',
                {
                    "n": 1,
                },
            )
        """,
    ],
    ids=["comments", "formatting and line"],
)
def test_comments_formatting_and_place_do_not_count(source: str) -> None:
    """Tidying up a file must not refuse the runs that are waiting."""
    assert same(function(PLAIN), function(source))


@pytest.mark.parametrize(
    "source",
    [
        'def step(ctx):\n    return "ok", {"n": 2}',
        'def step(ctx):\n    return "fail", {"n": 1}',
        'def step(ctx, more=1):\n    return "ok", {"n": 1}',
        'async def step(ctx):\n    return "ok", {"n": 1}',
        'def step(ctx):\n    print()\n    return "ok", {"n": 1}',
        'keep = lambda f: f\n@keep\ndef step(ctx):\n    return "ok", {"n": 1}',
        'step = lambda ctx: ("ok", {"n": 1})',
    ],
    ids=["constant", "outcome", "parameter", "async", "statement", "decorator", "lambda"],
)
def test_code_counts(source: str) -> None:
    """A run must not continue with other rules than it was started with."""
    assert not same(function(PLAIN), function(source))


def test_lambdas_sharing_a_line_are_distinguished() -> None:
    """`check=lambda ...` twice in one line is common, and they do not check the same."""
    pair = "step = (lambda ctx: ctx > 1, lambda ctx: ctx > 2)"
    first, second = function(pair)
    (alone,) = function("step = (lambda ctx: ctx > 2,)")

    assert not same(first, second)
    assert same(second, alone)


def test_lambdas_that_only_name_a_constant_are_distinguished_too() -> None:
    """Some versions of Python do not report the column of such a lambda."""
    first, second = function("step = (lambda ctx: True, lambda ctx: False)")

    assert not same(first, second)


def test_a_lambda_is_the_same_on_any_line() -> None:
    """A formatter that breaks the line around a lambda must not change the definition."""
    short = function('step = dict(title="a", check=lambda ctx: ctx.result)["check"]')
    long = function(
        """
        step = dict(
            title="a",
            check=lambda ctx: (
                ctx.result
            ),
        )["check"]
        """
    )

    assert same(short, long)


def test_a_lambda_within_a_lambda_is_not_taken_for_it() -> None:
    """Both start on the same line and have the same name."""
    outer = function("step = lambda a: (lambda b: b)")

    assert describe_code(outer)["code"] == "lambda a: lambda b: b"
    assert describe_code(outer(1))["code"] == "lambda b: b"


FACTORY = """
    def make(mode):
        def step(ctx):
            return mode

        return step
"""


def test_what_a_factory_closed_over_counts() -> None:
    """`reviewer("strict")` changed to `reviewer("lenient")` is another definition."""
    make = function(FACTORY, "make")

    assert same(make("strict"), make("strict"))
    assert not same(make("strict"), make("lenient"))
    assert not same(make(("a", "b")), make(("a", "c")))
    assert not same(make(lambda: 1), make(lambda: 2))


def test_an_object_that_may_change_counts_by_its_type_only() -> None:
    """A list that a handler collects into grows during the run; the definition stays the same."""
    make = function(FACTORY, "make")

    assert same(make([]), make(["grown"]))
    assert not same(make([]), make({}))
    assert same(make(int), make(int))
    assert not same(make(int), make(str))


def test_a_counter_the_function_changes_itself_does_not_count() -> None:
    """It would make every resume look like a changed definition."""
    make = function(
        """
        def make(n):
            def step(ctx):
                nonlocal n
                n += 1

            return step
        """,
        "make",
    )

    assert same(make(1), make(2))


def test_an_enum_member_that_was_closed_over_counts_by_its_value() -> None:
    """It is as constant as a text."""

    class Mode(StrEnum):
        QUICK = "quick"
        FULL = "full"

    make = function(FACTORY, "make")

    assert not same(make(Mode.QUICK), make(Mode.FULL))
    assert same(make(Mode.QUICK), make("quick"))


def test_a_function_that_calls_itself_is_described_to_an_end() -> None:
    """It closes over itself."""
    make = function(
        """
        def make(stop):
            def step(n):
                return stop if n == 0 else step(n - 1)

            return step
        """,
        "make",
    )

    assert same(make(1), make(1))
    assert not same(make(1), make(2))


def test_a_name_that_is_not_there_yet_does_no_harm() -> None:
    """A factory may define what its handler uses after the handler."""
    step = function(
        """
        def make():
            def step(ctx):
                return later

            if False:
                later = 1
            return step

        step = make()
        """
    )

    assert describe_code(step)["made_with"] == [None]


def test_the_arguments_of_a_partial_count() -> None:
    """They are how one function serves several steps."""
    step = function("def step(ctx, role, times=1): ...")

    strict = functools.partial(step, role="strict")

    assert same(strict, functools.partial(step, role="strict"))
    assert not same(strict, functools.partial(step, role="lenient"))
    assert not same(strict, step)
    assert not same(functools.partial(step, 1), functools.partial(step, 2))


def test_the_function_in_a_partial_counts() -> None:
    """A partial has no source of its own."""
    one = function("def step(ctx, role): return 1")
    other = function("def step(ctx, role): return 2")

    assert not same(functools.partial(one, role="x"), functools.partial(other, role="x"))


def test_the_function_under_a_decorator_counts_with_and_without_wraps() -> None:
    """Logging or timing a handler must not hide it."""
    plain = "def logged(f):\n    def wrapper(ctx): return f(ctx)\n    return wrapper\n"
    wraps = plain.replace("def wrapper", "@functools.wraps(f)\n    def wrapper")

    for logged in (plain, f"import functools\n{wraps}"):
        one = function(f"{logged}@logged\ndef step(ctx): return 1")
        other = function(f"{logged}@logged\ndef step(ctx): return 2")

        assert not same(one, other)


def test_defaults_count() -> None:
    """Also when they are computed elsewhere."""
    make = "def make(n):\n    def step(ctx, *, times=n): ...\n    return step"

    assert not same(function(make, "make")(1), function(make, "make")(2))


CALLABLE = """
    from dataclasses import dataclass

    @dataclass({options})
    class Reviewer:
        mode: str

        def __call__(self, ctx):
            return {body}

        def method(self, ctx):
            return {body}
"""


def reviewer(mode: str, *, options: str = "frozen=True", body: str = "1") -> Any:
    return function(CALLABLE.format(options=options, body=body), "Reviewer")(mode)


@pytest.mark.parametrize(
    "of", [lambda r: r, lambda r: r.method], ids=["callable object", "bound method"]
)
def test_an_object_counts_by_its_code_and_by_what_is_frozen_in_it(of: Callable[[Any], Any]) -> None:
    """`Reviewer("strict")` is a definition; a counter in an ordinary object is not."""
    assert same(of(reviewer("a")), of(reviewer("a")))
    assert not same(of(reviewer("a")), of(reviewer("b")))
    assert not same(of(reviewer("a")), of(reviewer("a", body="2")))
    assert same(of(reviewer("a", options="")), of(reviewer("b", options="")))


def test_without_source_the_compiled_code_counts() -> None:
    """Workflows typed at a prompt have no file to read."""

    def typed(expression: str) -> Any:
        return eval(expression)

    assert same(typed("lambda x: x + 1"), typed("lambda x: x + 1"))
    assert not same(typed("lambda x: x + 1"), typed("lambda x: x + 2"))
    assert not same(typed("lambda x: x.a"), typed("lambda x: x.b"))
    assert not same(typed("lambda x: [i + 1 for i in x]"), typed("lambda x: [i + 2 for i in x]"))


def test_compiled_code_reads_the_same_in_every_process() -> None:
    """The order of a set of strings differs from process to process."""
    member = eval("lambda x: x in {'c', 'a', 'b'}")

    assert "[\"'a'\", \"'b'\", \"'c'\"]" in describe_code(member)["code"][2]


@pytest.mark.parametrize("line", ["x = 1\n", "def step(:\n"], ids=["other", "broken"])
def test_a_file_changed_since_it_was_loaded_is_not_believed(line: str) -> None:
    """The lines on disk are then not the function that runs."""
    step = function("\n\ndef step(ctx): return 1")
    linecache.cache[step.__code__.co_filename] = (0, None, [line] * 5, "")

    assert isinstance(describe_code(step)["code"], list)


def test_a_builtin_counts_by_its_name() -> None:
    """There is nothing else to look at."""
    assert describe_code(len) == {"name": "len"}


def test_a_compiled_handler_says_itself_what_it_is_made_of() -> None:
    """Notations turn text into handlers; the text is the definition, not our own code."""

    @dataclass
    class Compiled:
        definition: dict[str, str]

        def __call__(self, ctx: Any) -> None: ...

    assert describe_code(Compiled({"prompt": "x"})) == {"prompt": "x"}
