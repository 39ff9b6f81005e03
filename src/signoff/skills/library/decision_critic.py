"""Examines a decision before it is carried out: what it rests on, and what speaks against it."""

from __future__ import annotations

from signoff.skills import Outcome
from signoff.skills.parts import SkillTexts, until_confident

OK, ITERATE = Outcome.OK, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

WORKFLOW = TEXTS.workflow(
    TEXTS.step("structure", {OK: "load"}),
    TEXTS.step("load", {OK: "questions"}),
    TEXTS.step("questions", {OK: "answer"}),
    TEXTS.step("answer", {OK: "alternatives", ITERATE: "answer"}, until_confident),
    TEXTS.step("alternatives", {OK: "failure"}),
    TEXTS.step("failure", {OK: "recheck"}),
    TEXTS.step("recheck", {OK: "verdict"}),
    TEXTS.step("verdict", {OK: None}),
)
