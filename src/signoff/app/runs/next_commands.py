"""Formats remedies as commands to type, for messages that show what to do next.

No other module outside `cli` names a command or an option.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, assert_never

from signoff import plugins
from signoff.core import remedies as fix
from signoff.core.digest import SHORT
from signoff.core.errors import SHOWN_NAMES, SignoffError
from signoff.core.questions import UserQuestion, questions_of
from signoff.core.requests import PRESENCE, AnswerForm, ItemState, needs_presence, options_of
from signoff.notation import YAML_SUFFIXES
from signoff.runtime.extras import install_command
from signoff.runtime.store_port import InboxItem

LOCAL_WORKER_IDLE_SECONDS = 60
"""How long a worker that was started in the background waits for more runs."""


def error_message(error: SignoffError) -> str:
    """Returns what an error reports, with the commands that fix it."""
    separator = "\n" if "\n" in str(error) else "; "
    return separator.join([str(error), *map(next_command, error.remedies)])


def error_lines(error: SignoffError) -> str:
    """Returns the same for a terminal: what is wrong, then a line for each thing to do."""
    if "\n" in str(error):
        return error_message(error)
    sentences = re.split(r"(?<=\.) (?=[A-Z])", str(error))
    return "\n  ".join([*sentences, *map(next_command, error.remedies)])


def local_worker_arguments() -> list[str]:
    """Returns the arguments of a worker that ends when there is nothing left to do."""
    return ["worker", "--idle-exit", str(LOCAL_WORKER_IDLE_SECONDS)]


def next_commands(remedies: Iterable[fix.Remedy], run: str = "") -> list[str]:
    """Returns one line per remedy; `run` is the one that remedies without a run are about."""
    return [next_command(each, run) for each in remedies]


def next_command(remedy: fix.Remedy, run: str = "") -> str:
    """Returns what to do in a few words, and the exact command."""
    words = _WORDS[type(remedy)]
    return words(remedy, getattr(remedy, "run", "") or run)


def inbox_command(request: int | str = "") -> str:
    """Returns the command that shows a request and how to answer it; it answers nothing."""
    return f"signoff inbox {request}".rstrip()


def with_file(found: Iterable[fix.Remedy], target: str) -> tuple[fix.Remedy, ...]:
    """Returns remedies with the file that sets the round limit of a run with this target.

    A workflow in Python may set the limit at any edge that closes a loop, so only the files of a
    notation can be named. A run without a target cannot be started again by name.
    """
    names: dict[type[fix.Remedy], dict[str, str]] = {}
    scheme = target.partition(":")[0] if ":" in target else None
    notation = next((each for each in plugins.notations() if each.scheme == scheme), None)
    if target.endswith(YAML_SUFFIXES):
        names[fix.RaiseRounds] = {"file": target}
    elif notation is not None and notation.settings is not None and notation.settings.rounds:
        setting = f"{notation.settings.name}.{notation.settings.rounds}"
        names[fix.RaiseRounds] = {"file": "the settings", "setting": setting}
    if not target:
        names[fix.StartRun] = {"run": ""}
    return tuple(replace(each, **names.get(type(each), {})) for each in found)


def _raise_limit(remedy: fix.RaiseLimit, run: str) -> str:
    if remedy.scope == "step":
        return f"raise the step's {remedy.limit}, then: signoff resume {run} --adopt"
    return f"raise the limit: signoff resume {run} --limit {remedy.limit}=NUMBER"


def _raise_rounds(remedy: fix.RaiseRounds, run: str) -> str:
    more = f"raise {remedy.setting} in {remedy.file}" if remedy.file else "allow more rounds"
    return f"{more}, then: signoff resume {run} --adopt"


def _resume(remedy: fix.Resume, run: str) -> str:
    command = f"signoff resume {run or 'RUN'}"
    if remedy.adopt:
        return f"if you changed the workflow: {command} --adopt"
    if remedy.agent:
        return f"use another agent: {command} --agent {remedy.agent}={remedy.instead or 'AGENT'}"
    if remedy.target:
        return f"name the workflow: {command} --target TARGET"
    if remedy.external:
        return f"to hand out its work, run: {command} --pull"
    return f"to continue it, run: {command}"


def _start(remedy: fix.StartRun, _run: str) -> str:
    what = "this run has ended; start a new one" if remedy.again else "start one"
    return f"{what}: signoff run {f'--again {remedy.run}' if remedy.run else 'TARGET'}"


def _resume_due(remedy: fix.ResumeDue, _run: str) -> str:
    if remedy.after is None:
        return "resume all due runs: signoff resume --due"
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(remedy.after))
    return f"after {at}: signoff resume --due"


def _answer(remedy: fix.AnswerRequest, _run: str) -> str:
    options = "|".join(map(shlex.quote, remedy.options))
    return f"answer it: signoff answer {remedy.item} {options or 'TEXT'}"


def _models(remedy: fix.ChooseModel, _run: str) -> str:
    names = remedy.available
    more = f" and {len(names) - SHOWN_NAMES} more" if names[SHOWN_NAMES:] else ""
    return f"available models: {', '.join(names[:SHOWN_NAMES]) or 'none'}{more}"


def _fallback(remedy: fix.AddFallback, _run: str) -> str:
    setting = f"agents.{remedy.agent or 'AGENT'}.fallback"
    return (
        f"if it stays busy, set {setting} in .signoff/config.yaml: then another agent answers "
        "(only an agent that is out of quota parks the run until a time)"
    )


def _token(remedy: fix.CreateToken, _run: str) -> str:
    scope = f" --scope {remedy.scope}" if remedy.scope else ""
    return f"create one: signoff web --token --name NAME{scope}"


def _start_worker(remedy: fix.StartWorker, _run: str) -> str:
    # What a worker has by itself, if it is started at the right place; all others are labels.
    places = [each for each in remedy.missing if each.startswith(("agent:", "folder:", "host:"))]
    labels = [shlex.quote(each) for each in remedy.missing if each not in places]
    where = f" that has {', '.join(places)}" if places else ""
    return f"start one{where}: signoff worker{''.join(f' --capability {each}' for each in labels)}"


_WORDS: Mapping[type[fix.Remedy], Callable[[Any, str], str]] = {
    fix.RaiseLimit: _raise_limit,
    fix.RaiseRounds: _raise_rounds,
    fix.Resume: _resume,
    fix.ResumeDue: _resume_due,
    fix.StartRun: _start,
    fix.StartWorker: _start_worker,
    fix.CancelRun: lambda _, run: f"stop it: signoff cancel {run}",
    fix.ShowRun: lambda _, run: f"details: signoff show {run}",
    fix.WatchRun: lambda _, run: f"watch it: signoff logs -f {run}",
    fix.TakeWork: lambda _, run: f"see the open work: signoff next {run}",
    fix.ShowInbox: lambda it, run: f"details: {inbox_command(it.item or run)}",
    fix.AnswerRequest: _answer,
    fix.PassOption: lambda it, _: f"add --{it.option.replace('_', '-')} {it.value}".rstrip(),
    fix.InitProject: lambda _, __: "create one: signoff init",
    fix.TrustProject: lambda _, __: "if you trust them: signoff trust (in CI, set SIGNOFF_TRUST=1)",
    fix.CheckSetup: lambda _, __: "see what each agent needs: signoff doctor -v",
    fix.ShowSettings: lambda _, __: "see where each comes from: signoff config show",
    fix.OpenPage: lambda _, __: "print a login link: signoff web --link",
    fix.CreateToken: _token,
    fix.SignOnPage: lambda it, _: f"sign request {it.item} on the page: signoff web --open",
    fix.AddPasskey: lambda _, __: "register one: signoff passkeys add NAME",
    fix.Login: lambda it, _: f"log in to {it.program}{it.how and f': {it.how}'}",
    fix.Install: lambda it, _: f"install it: {install_command(it.extra)}",
    fix.PullModel: lambda it, _: f"download it: signoff models pull {it.model}",
    fix.ChooseModel: _models,
    fix.SetUpStore: lambda _, __: "show an administrator what to run: signoff store setup --print",
    fix.SetPassword: lambda _, __: "set PGPASSWORD, or add the password to ~/.pgpass",
    fix.SetUpDatabase: lambda _, __: "show the owner what to grant: signoff db setup --print",
    fix.AddFallback: _fallback,
    fix.ListBackups: lambda _, __: "list them: signoff db backups",
}


def answer_commands(item: InboxItem, form: Mapping[str, Any], now: float) -> list[str]:
    """Returns the exact commands that answer a request and resume its run, one per answer.

    A request that is no longer open has none; past its deadline, its run can only be resumed.
    """
    if item.state is not ItemState.OPEN:
        return []
    if item.deadline is not None and item.deadline <= now:
        return [f"signoff resume {item.run}"]
    match item.kind.answer_form:
        case AnswerForm.DECISION:
            commands = [f"approve {item.id}", f'reject {item.id} --why "..."']
            commands = commands[1:] if form.get(PRESENCE) else commands
        case AnswerForm.PICK:
            commands = [f"answer {item.id} {each}" for each in _choices(form)]
        case AnswerForm.PICKS:
            commands = [f"answer {item.id} {each}" for each in _answers(form)]
        case AnswerForm.WORK:
            commands = [f"answer {item.id} --file REPLY.md"]
        case AnswerForm.TEXT:
            commands = [f'answer {item.id} "..."']
        case other:
            assert_never(other)
    # Bound to what is shown here: copied late, or in another project, it answers nothing else.
    bound = [f"signoff {each} --digest {item.digest[:SHORT]} --resume" for each in commands]
    return ["signoff web --open", *bound] if form.get(PRESENCE) else bound


def _choices(form: Mapping[str, Any]) -> Iterator[str]:
    for number, option in enumerate(options_of(form), 1):
        if needs_presence(form, option["label"]):
            # No command can approve it.
            continue
        text = ' --text "..."' if option.get("requires_input") else ""
        label = str(option["label"])
        # What begins with a dash would be taken for an option of the command.
        yield f"{number if label.startswith('-') else shlex.quote(label)}{text}"


def _answers(form: Mapping[str, Any]) -> list[str]:
    """Returns one answer per option of a single question, else a line to fill in."""
    match questions_of(form):
        case [UserQuestion(multi_select=False)]:
            return list(_choices(form))
        case questions:
            return [" ".join(shlex.quote(_placeholder(each)) for each in questions)]


def _placeholder(question: UserQuestion) -> str:
    # Pasted as it is, it names no option and is refused.
    more = ",..." if question.multi_select else ""
    return f"{question.header}=<{'|'.join(question.labels)}{more}>"
